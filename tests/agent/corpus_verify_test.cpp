// Entries are proven again where something has changed; what fails goes into quarantine, and nothing else does.
#include "agent/store/corpus_verify.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "agent/store/corpus_entry.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kModel = "class Model(nn.Module):\n    pass\n";

class CorpusVerify : public ::testing::Test {
 protected:
  CorpusVerify() : folder_(fs::temp_directory_path() / ("tilepilot-corpus-verify-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    corpus_ = *retrieval::open_corpus(folder_ / "corpus.db");
    options_.work = folder_ / "work";
    options_.judge.target = "cpu";
    options_.version = "tilepilot 1";
    options_.check = [this](SourceMap&, const CheckOptions& check) { return judge(check); };
  }
  ~CorpusVerify() override { fs::remove_all(folder_); }

  void add(const std::string& name, const std::string& model = kModel, const std::string& target = "cpu") {
    retrieval::Entry entry{.name = name, .origin = "generated", .target = target};
    entry.structure.ops = {"aten::relu"};
    entry.source = "name = '" + name + "'\n";
    entry.model_source = model;
    ASSERT_TRUE(*corpus_->add(entry));
  }

  // Verifies all programs but those that hold the word "bad".
  Result<Certified> judge(const CheckOptions& check) {
    std::string text(static_cast<size_t>(fs::file_size(check.candidate)), '\0');
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(check.candidate.c_str(), "rb"), std::fclose);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
    judged_.push_back(text);
    EXPECT_TRUE(fs::exists(check.model));
    EXPECT_FALSE(check.time);
    if (text.find("lost") != std::string::npos)
      return make_error(DiagnosticKind::worker_unavailable, {}, "there is no worker");
    if (text.find("poison") != std::string::npos) return make_error(DiagnosticKind::model_invalid, {}, "it raises");
    if (text.find("elsewhere") != std::string::npos)
      return make_error(DiagnosticKind::model_invalid, {}, "importing raised `ModuleNotFoundError`");
    Certified checked;
    checked.verdict.target = "cpu";
    checked.verdict.outcome = text.find("bad") != std::string::npos    ? eval::Outcome::wrong_values
                              : text.find("ours") != std::string::npos ? eval::Outcome::worker_failed
                                                                       : eval::Outcome::verified;
    checked.verdict.detail = "because";
    return checked;
  }

  Result<CorpusVerification> run() { return verify_corpus(sources_, *corpus_, options_); }

  fs::path folder_;
  SourceMap sources_;
  std::unique_ptr<retrieval::Corpus> corpus_;
  CorpusVerifyOptions options_;
  std::vector<std::string> judged_;
};

TEST_F(CorpusVerify, QuarantinesWhatFails) {
  add("good");
  add("bad");
  add("poison");
  const CorpusVerification result = *run();
  EXPECT_EQ(result.held, 1);
  EXPECT_EQ(result.failed, 2);
  EXPECT_EQ(result.failures[0].name, "bad");
  EXPECT_THAT((*corpus_->find("bad"))->quarantined, HasSubstr("wrong_values: because"));
  EXPECT_THAT((*corpus_->find("poison"))->quarantined, HasSubstr("it raises"));
  EXPECT_TRUE((*corpus_->find("good"))->quarantined.empty());
  EXPECT_THAT((*corpus_->find("good"))->toolchain, HasSubstr("tilepilot 1"));
  const auto hits = *corpus_->search({{"aten::relu"}}, "", 5);
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].entry.name, "good");
}

TEST_F(CorpusVerify, JudgesAgainWhatChangedOrFailed) {
  add("good");
  add("bad");
  ASSERT_TRUE(run().ok());
  judged_.clear();
  CorpusVerification again = *run();
  EXPECT_EQ(again.unchanged, 1);
  EXPECT_EQ(again.failed, 1);  // in quarantine: it may hold by now
  EXPECT_EQ(judged_.size(), 1u);
  options_.version = "tilepilot 2";
  judged_.clear();
  EXPECT_EQ(run()->held, 1);
  EXPECT_EQ(judged_.size(), 2u);
  options_.all = true;
  EXPECT_EQ(run()->unchanged, 0);
}

TEST_F(CorpusVerify, JudgesWhatWasProvenElsewhereOnly) {
  add("bad");
  ASSERT_TRUE(run().ok());
  retrieval::Entry claims = **corpus_->find("bad");
  claims.uid.clear();
  claims.name = "claims";
  claims.target = "cpu:claimed";  // another entry than that above
  claims.quarantined.clear();
  claims.verified.clear();  // as `import_corpus` leaves it, beside a toolchain that is this one
  options_.judge.target = claims.target;
  ASSERT_TRUE(*corpus_->add(claims));
  EXPECT_EQ(run()->failed, 1);
}

TEST_F(CorpusVerify, SkipsAloudWhatCannotBeJudgedHere) {
  add("other target", kModel, "cuda:sm_90a");
  add("unknown", "");
  add("ours");
  add("elsewhere");  // its model needs a module that this Python lacks
  const CorpusVerification result = *run();
  EXPECT_EQ(result.held + result.failed + result.unchanged, 0);
  ASSERT_EQ(result.skipped.size(), 4u);
  EXPECT_THAT(result.skipped[0].why, HasSubstr("for `cuda:sm_90a`"));
  EXPECT_THAT(result.skipped[1].why, HasSubstr("not known"));
  EXPECT_THAT(result.skipped[2].why, HasSubstr("worker failed"));
  EXPECT_THAT(result.skipped[3].why, HasSubstr("ModuleNotFoundError"));
  const auto entries = *corpus_->list();
  for (const auto& entry : entries) EXPECT_TRUE(entry.quarantined.empty()) << entry.name;
}

TEST_F(CorpusVerify, ProvesWhatIsNamed) {
  add("one");
  add("two");
  options_.names = {"two"};
  EXPECT_EQ(run()->held, 1);
  EXPECT_TRUE((*corpus_->find("one"))->verified.empty());
  EXPECT_FALSE((*corpus_->find("two"))->verified.empty());
  options_.names = {"three"};
  EXPECT_EQ(run().error().kind, DiagnosticKind::bad_usage);
}

TEST_F(CorpusVerify, FailNothingToJudgeWith) {
  add("lost");
  add("good");
  const auto result = run();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, DiagnosticKind::worker_unavailable);
  EXPECT_TRUE((*corpus_->find("lost"))->quarantined.empty());
}

TEST(CorpusEntry, ReadsTheLicenceOfAModel) {
  EXPECT_EQ(licence_in("# SPDX-License-Identifier: MIT\nimport torch\n"), "MIT");
  EXPECT_EQ(licence_in("/* SPDX-License-Identifier:  Apache-2.0 OR MIT */\r\nx\n"), "Apache-2.0 OR MIT");
  EXPECT_EQ(licence_in("import torch\n"), "");
  EXPECT_EQ(licence_in("# SPDX-License-Identifier:"), "");
  EXPECT_EQ(licence_in("# SPDX-License-Identifier:\nimport torch\n"), "");
}

TEST(CorpusEntry, TellsWhatWasMeasuredAndWhereItComesFrom) {
  eval::Reference reference;
  reference.forward.values = {{eval::GraphValue::Kind::input, "x", true, "float32", {4, 8}, {8, 1}},
                              {eval::GraphValue::Kind::node, "y", true, "float32", {4, 8}, {8, 1}}};
  reference.forward.inputs = {0};
  reference.forward.nodes = {{"aten::relu", "", {{eval::ValueRef{0}}}, {}, {1}, "", 0}};
  reference.forward.outputs = {eval::ValueRef{1}};
  eval::Preflight preflight;
  preflight.least.memory_s = 5e-6;
  Certified certified;
  certified.source = "x = 1\n";
  certified.model_source = "# SPDX-License-Identifier: MIT\n";
  certified.judge.dtype = "bf16";
  certified.version = "tilepilot 1";
  certified.verdict.target = "cpu";
  certified.verdict.candidate = eval::Timing{20, 20, 20, 9};
  certified.verdict.eager = eval::Timing{50, 50, 50, 9};
  certified.verdict.compiled = {{"default", {30, 30, 30, 9}, 1.5, 1.4, 1.6, 2}};
  const retrieval::Entry entry =
      corpus_entry({reference, preflight, certified, "name", "summary", "llm", "run", 2, {"shown"}});
  EXPECT_EQ(entry.speedup, 2.5);
  EXPECT_EQ(entry.compile_speedup, 1.5);
  EXPECT_NEAR(entry.roofline, 0.25, 1e-9);
  EXPECT_EQ(entry.licence, "MIT");
  EXPECT_THAT(entry.inputs[0].extents, ElementsAre(4, 8));
  EXPECT_EQ(entry.outputs.size(), 1u);
  EXPECT_EQ(entry.graph, retrieval::graph_fingerprint(entry.structure));
  const auto lineage = nlohmann::json::parse(entry.lineage);
  EXPECT_EQ(lineage["attempt"], 2);
  EXPECT_EQ(lineage["shown"][0], "shown");
  EXPECT_EQ(nlohmann::json::parse(entry.task)["dtype"], "bf16");
  EXPECT_EQ(nlohmann::json::parse(entry.toolchain)["tilepilot"], "tilepilot 1");
  EXPECT_EQ(nlohmann::json::parse(entry.certificate)["format"], "tilepilot-certificate");
}

}  // namespace
}  // namespace tilepilot::agent
