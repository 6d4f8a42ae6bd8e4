// Certificates: what is in them, and that edits show.
#include "agent/certificate.h"

#include <gmock/gmock.h>

#include "compiler/runtime/cuda/driver.h"
#include "tests/golden_diagnostic.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class Certificates : public testing::DiagnosticTest {
 protected:
  Certified facts() const {
    Certified facts;
    facts.program = folder_ / "fast.py";
    facts.source = "class ModelNew: ...";
    facts.model = folder_ / "models/model.py";
    facts.model_source = "class Model: ...";
    facts.torch_version = "2.13";
    facts.reference = {"graph", ""};
    facts.version = "tilepilot 0";
    facts.verdict.outcome = eval::Outcome::verified;
    facts.verdict.target = "cpu";
    facts.verdict.seed = 0xfedcba9876543210u;
    facts.verdict.candidate = facts.verdict.eager = eval::Timing{1.0 / 3, 0.3, 0.4, 30};
    facts.verdict.errors.push_back({.max_abs = std::numeric_limits<double>::infinity(), .bound = 0.1});
    facts.verdict.notes = {"\xff is no text"};
    facts.verdict.gpu_state = eval::GpuState{.sm_mhz_low = 1755, .sm_mhz_high = 1980, .throttled = {"sw_power_cap"}};
    return facts;
  }
  json written() const {
    std::ifstream stream(path_());
    return json::parse(stream);
  }
  void replace(const json& certificate) const { std::ofstream(path_()) << certificate.dump(); }
  fs::path path_() const { return folder_ / "fast.cert.json"; }
};

TEST_F(Certificates, HoldWhatWasJudgedAndHow) {
  EXPECT_EQ(certificate_path(folder_ / "fast.py"), path_());
  ASSERT_TRUE(write_certificate(path_(), facts()).ok());
  auto read = read_certificate(path_());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ((*read)["program"]["file"], "fast.py");
  EXPECT_EQ((*read)["program"]["sha256"], sha256_of("class ModelNew: ..."));
  EXPECT_EQ((*read)["model"]["file"], "models/model.py");
  EXPECT_EQ((*read)["seeds"], json::array({0xfedcba9876543210u}));
  EXPECT_EQ((*read)["verdict"]["outcome"], "verified");
  EXPECT_EQ((*read)["verdict"]["gpu_state"]["sm_mhz"]["min"], 1755);
  EXPECT_EQ((*read)["judging"]["target"], "cpu");
  EXPECT_EQ((*read)["judging"]["aten"], "hybrid");
  EXPECT_EQ((*read)["environment"]["torch"], "2.13");
  // A number means something beside what it was measured on.
  EXPECT_EQ((*read)["model"]["sha256"], sha256_of("class Model: ..."));
  EXPECT_EQ((*read)["reference"]["graph_sha256"], "graph");
  EXPECT_EQ((*read)["environment"]["tilepilot"], "tilepilot 0");
  for (const char* part : {"processor", "cores", "system", "compiler"})
    EXPECT_FALSE((*read)["environment"][part].is_null()) << part;
  EXPECT_THAT((*read)["environment"]["sandbox"].get<std::string>(), HasSubstr("seccomp "));
  EXPECT_TRUE((*read)["reference"]["weights_sha256"].is_null());
  EXPECT_THAT((*read)["integrity"]["means"].get<std::string>(), HasSubstr("no signature"));
}

TEST_F(Certificates, NameTheGpuAndItsDriver) {
  if (auto gpu = runtime::cuda::Device::open(); !gpu.ok()) GTEST_SKIP() << gpu.error().message;
  Certified on_gpu = facts();
  on_gpu.verdict.target = "cuda:sm_90a";
  const json environment = describe_environment(on_gpu);
  EXPECT_FALSE(environment["gpu"].get<std::string>().empty());
  EXPECT_THAT(environment["driver"].get<std::string>(), HasSubstr("CUDA "));
}

TEST_F(Certificates, MayBeFormattedAnew) {
  ASSERT_TRUE(write_certificate(path_(), facts()).ok());
  replace(written());
  EXPECT_TRUE(read_certificate(path_()).ok());
}

TEST_F(Certificates, FailEdited) {
  ASSERT_TRUE(write_certificate(path_(), facts()).ok());
  const json before = written();
  for (const char* place : {"/verdict/candidate/median_us", "/program/sha256", "/seeds/0", "/added", "/integrity"}) {
    json edited = before;
    edited[json::json_pointer(place)] = 1;
    replace(edited);
    auto read = read_certificate(path_());
    ASSERT_FALSE(read.ok()) << place;
    EXPECT_EQ(read.error().kind, DiagnosticKind::bad_usage);
    EXPECT_THAT(read.error().message, HasSubstr("was edited")) << place;
  }
}

TEST_F(Certificates, FailOtherFiles) {
  for (const char* text : {"", "[]", "{\"format\": 3}", "{\"format\": \"other\"}"}) {
    auto read = read_certificate(write("other.json", text));
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.error().message, HasSubstr("is no certificate")) << text;
  }
  auto newer = read_certificate(write("newer.json", R"({"format": "tilepilot-certificate", "version": 9})"));
  EXPECT_THAT(newer.error().message, HasSubstr("another version"));
  EXPECT_EQ(read_certificate(folder_ / "none").error().kind, DiagnosticKind::file_not_found);
}

TEST_F(Certificates, ReplaceOnlyCertificates) {
  ASSERT_TRUE(write_certificate(path_(), facts()).ok());
  EXPECT_TRUE(write_certificate(path_(), facts()).ok());
  write("fast.cert.json", "my notes");
  auto refused = write_certificate(path_(), facts());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("it is there, and no certificate"));
}

TEST_F(Certificates, HashReferencesByContent) {
  write("reference.json", R"({"model_path": "/a", "forward": [1]})");
  write("weights.safetensors", "numbers");
  const ReferenceHashes first = hash_reference(folder_);
  EXPECT_EQ(first.weights, sha256_of("numbers"));
  write("reference.json", R"({"model_path": "/b", "forward": [1]})");
  EXPECT_EQ(hash_reference(folder_).graph, first.graph);
  write("reference.json", R"({"model_path": "/a", "forward": [2]})");
  EXPECT_NE(hash_reference(folder_).graph, first.graph);
}

TEST_F(Certificates, SayWhatTheInputsLookLike) {
  write("reference.json", R"({"forward": {"inputs": [1], "values": [
    {"kind": "parameter", "dtype": "float16", "shape": [2]}, {"kind": "input", "dtype": "float32", "shape": [3, 4]}]}})");
  Certified certified = facts();
  certified.reference = hash_reference(folder_);
  EXPECT_EQ(make_certificate(certified, folder_)["reference"]["inputs"],
            nlohmann::json::parse(R"([{"dtype": "float32", "shape": [3, 4]}])"));
  write("reference.json", R"({"forward": {"inputs": [7], "values": []}})");
  EXPECT_EQ(hash_reference(folder_).inputs, nlohmann::json::array());
}

}  // namespace
}  // namespace tilepilot::agent
