// The program as its users meet it: through the command line.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/runtime/process.h"
#include "compiler/source/file.h"

namespace tilepilot {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kTests = fs::path(TILEPILOT_SOURCE_DIR) / "tests/cli";

class CommandLine : public testing::Test {
 protected:
  CommandLine() : folder_(fs::temp_directory_path() / ("tilepilot-cli-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~CommandLine() override { fs::remove_all(folder_); }

  // Runs `tilepilot` with a store of this test's own. `environment` are extra NAME=value pairs.
  runtime::ProcessResult tilepilot(std::vector<std::string> arguments,
                                   const std::vector<std::string>& environment = {}) {
    std::vector<std::string> argv = {"/usr/bin/env", "TILEPILOT_STORE=" + store().string(), "TILEPILOT_API_KEY="};
    argv.insert(argv.end(), environment.begin(), environment.end());
    argv.push_back(TILEPILOT_BINARY_DIR "/tilepilot");
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    auto result = runtime::run_process(argv, {.time_limit_s = 300, .working_directory = folder_.string()});
    EXPECT_TRUE(result.ok());
    return std::move(*result);
  }
  runtime::ProcessResult check(const std::string& candidate, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"check", (kTests / "candidates" / (candidate + ".py")).string(), "-r",
                                          model("matmul"), "--no-timing"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return tilepilot(arguments);
  }
  static std::string model(const std::string& name) { return (kTests / "models" / (name + ".py")).string(); }
  static std::string all(const runtime::ProcessResult& result) { return result.out + result.err; }
  fs::path store() const { return folder_ / "store.db"; }

  fs::path folder_;
};

TEST_F(CommandLine, HelpNamesEveryCommand) {
  auto result = tilepilot({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* command : {"generate", "check", "run", "compile", "corpus", "doctor"})
    EXPECT_THAT(result.out, HasSubstr(command));
}

TEST_F(CommandLine, FailUsage) {
  EXPECT_EQ(tilepilot({}).exit_code, 2);
  EXPECT_EQ(tilepilot({"generat"}).exit_code, 2);
  EXPECT_EQ(tilepilot({"generate"}).exit_code, 2);
  EXPECT_EQ(tilepilot({"generate", "x.py", "--author", "oracle"}).exit_code, 2);
  auto target = tilepilot({"generate", model("matmul"), "--target", "cuda:sm_75"});
  EXPECT_EQ(target.exit_code, 2);
  EXPECT_THAT(target.err, HasSubstr("`cuda:sm_75` is not available"));
}

// generate

TEST_F(CommandLine, GenerateWritesAVerifiedProgramOnceIntoTheCorpus) {
  auto result = tilepilot({"generate", model("scale_softmax"), "-o", "fast.py", "--json", "--seed", "7"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  json report = json::parse(result.out);
  EXPECT_TRUE(report["ok"]);
  EXPECT_TRUE(report["added_to_corpus"]);
  EXPECT_GT(report["speedup"].get<double>(), 0);
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "fast.py", program));
  EXPECT_THAT(program, AllOf(HasSubstr("class ModelNew"), HasSubstr("@T.prim_func")));

  auto checked = tilepilot({"check", "fast.py", "-r", model("scale_softmax")});
  EXPECT_EQ(checked.exit_code, 0) << all(checked);
  EXPECT_THAT(checked.out, AllOf(HasSubstr("verified"), HasSubstr("largest error"), HasSubstr("quartiles")));

  auto again = tilepilot({"generate", model("scale_softmax"), "-o", "again.py", "--json", "--attempts", "1"});
  ASSERT_EQ(again.exit_code, 0) << all(again);
  auto found = tilepilot({"corpus", "search", model("scale_softmax"), "--json"});
  ASSERT_EQ(found.exit_code, 0) << all(found);
  json hits = json::parse(found.out)["hits"];
  ASSERT_FALSE(hits.empty());
  EXPECT_EQ(hits[0]["entry"]["name"], "scale_softmax");
  EXPECT_THAT(hits[0]["reason"].get<std::string>(), HasSubstr("softmax"));
}

TEST_F(CommandLine, GenerateSaysWhatIsWrongWithAModel) {
  struct Case {
    const char* model;
    const char* says;
    const char* where;
  };
  for (const Case& wrong : {Case{"fail_not_python", "not Python", "fail_not_python.py:3"},
                            Case{"fail_no_model", "no `Model`", "fail_no_model.py"},
                            Case{"fail_get_inputs", "no data today", "fail_get_inputs.py:11"},
                            Case{"fail_data_dependent", "cannot be exported", "fail_data_dependent.py:7"}}) {
    auto result = tilepilot({"generate", model(wrong.model), "-o", "out.py"});
    EXPECT_EQ(result.exit_code, 2) << wrong.model;
    EXPECT_THAT(result.err, AllOf(HasSubstr(wrong.says), HasSubstr(wrong.where))) << wrong.model;
    EXPECT_FALSE(fs::exists(folder_ / "out.py"));
  }
  auto missing = tilepilot({"generate", "nowhere.py"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("cannot read `nowhere.py`"));
  auto as_json = tilepilot({"generate", "nowhere.py", "--json"});
  EXPECT_FALSE(json::parse(as_json.out)["ok"]);
}

TEST_F(CommandLine, FailOutputUnwritable) {
  auto result = tilepilot({"generate", model("scale_softmax"), "-o", "/proc/nothing.py", "--attempts", "1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("cannot write `/proc/nothing.py`"));
}

TEST_F(CommandLine, FailLanguageModelWithoutEndpointNetworkOrRun) {
  auto incomplete = tilepilot({"generate", model("matmul"), "--author", "llm"});
  EXPECT_EQ(incomplete.exit_code, 2);
  EXPECT_THAT(incomplete.err, HasSubstr("needs `--llm-url` and `--llm-model`"));
  auto replay = tilepilot({"generate", model("matmul"), "--author", "llm", "--replay", "12"});
  EXPECT_NE(replay.exit_code, 0);
  EXPECT_THAT(replay.err, HasSubstr("no run 12"));
}

// check

TEST_F(CommandLine, CheckVerifiesACorrectCandidate) {
  auto result = check("good_matmul", {"--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_EQ(json::parse(result.out)["outcome"], "verified");
}

TEST_F(CommandLine, CheckNamesEachDefectWithItsLine) {
  struct Case {
    const char* candidate;
    std::vector<const char*> says;
  };
  for (const Case& wrong : {
           Case{"fail_syntax", {"fail_syntax.py:22"}},
           Case{"fail_unknown_name", {"claer", "did you mean", "clear", "fail_unknown_name.py:15"}},
           Case{"fail_arity", {"gemm", "fail_arity.py:19"}},
           Case{"fail_gemm_shape", {"40", "32", "fail_gemm_shape.py:19"}},
           Case{"fail_copy_extents", {"16", "32", "fail_copy_extents.py:20"}},
           Case{"fail_dynamic_tile", {"fail_dynamic_tile.py:14"}},
           Case{"fail_staging_loop", {"fail_staging_loop.py:"}},
           Case{"fail_opens_file", {"open", "fail_opens_file.py:25"}},
       }) {
    auto result = check(wrong.candidate);
    EXPECT_EQ(result.exit_code, 1) << wrong.candidate << "\n" << all(result);
    for (const char* text : wrong.says) EXPECT_THAT(all(result), HasSubstr(text)) << wrong.candidate;
  }
}

TEST_F(CommandLine, CheckReportsWhereValuesAreWrong) {
  auto result = check("fail_wrong_values");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(all(result), AllOf(HasSubstr("wrong_values"), HasSubstr("largest error")));
}

TEST_F(CommandLine, CheckStopsAKernelThatLoopsForever) {
  auto result = check("fail_endless_kernel", {"--time-limit", "5"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(all(result), AllOf(HasSubstr("timed_out"), HasSubstr("line 31")));
}

TEST_F(CommandLine, FailCheckWithoutCompiler) {
  auto result =
      tilepilot({"check", (kTests / "candidates/good_matmul.py").string(), "-r", model("matmul"), "--no-timing"},
                {"PATH=/nowhere", "TILEPILOT_CACHE=" + (folder_ / "cache").string()});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(all(result), AllOf(HasSubstr("worker_failed"), HasSubstr("compiler")));
}

// corpus and store

TEST_F(CommandLine, FailStoreThatIsNoDatabase) {
  std::ofstream(store()) << "These are not the bytes of a database, however long one looks at them.\n";
  auto result = tilepilot({"corpus", "list"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("is not a database"));
  std::string text;
  ASSERT_TRUE(read_file(store(), text));
  EXPECT_THAT(text, HasSubstr("These are not the bytes"));
}

TEST_F(CommandLine, CorpusListsShowsAndSearches) {
  auto listed = tilepilot({"corpus", "list", "--json"});
  ASSERT_EQ(listed.exit_code, 0) << all(listed);
  EXPECT_GE(json::parse(listed.out)["entries"].size(), 12u);
  EXPECT_THAT(tilepilot({"corpus", "show", "rms_norm"}).out, HasSubstr("def rms_norm"));
  EXPECT_EQ(tilepilot({"corpus", "show", "nothing"}).exit_code, 2);
  EXPECT_EQ(tilepilot({"corpus", "search"}).exit_code, 2);
  EXPECT_THAT(tilepilot({"corpus", "search", "--text", "attention"}).out, HasSubstr("attention"));
}

// compile, run, doctor

TEST_F(CommandLine, CompileEmitsEveryStage) {
  std::string file = (kTests / "candidates/good_matmul.py").string();
  struct Case {
    const char* emit;
    const char* holds;
  };
  for (const Case& stage : {Case{"tokens", "prim_func"}, Case{"tree", "def matmul"}, Case{"ir", "gemm"},
                            Case{"ir:simplify", "gemm"}, Case{"source", "tp_launch_0"}}) {
    auto result = tilepilot({"compile", file, "--call", "matmul(96, 80, 64)", "--emit", stage.emit});
    EXPECT_EQ(result.exit_code, 0) << stage.emit << all(result);
    EXPECT_THAT(result.out, HasSubstr(stage.holds)) << stage.emit;
  }
  auto bad = tilepilot({"compile", file, "--call", "matmul(96)"});
  EXPECT_EQ(bad.exit_code, 1);
}

TEST_F(CommandLine, RunExecutesAScript) {
  std::ofstream(folder_ / "script.py")
      << "import torch\n\n\ndef main():\n    print(torch.arange(4).sum().item())\n\n\nif __name__ == \"__main__\":\n   "
         " main()\n";
  auto result = tilepilot({"run", "script.py"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_EQ(result.out, "6\n");
  std::ofstream(folder_ / "fail_script.py") << "import os\nos.remove('x')\n";
  auto refused = tilepilot({"run", "fail_script.py"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("fail_script.py:1"));
}

TEST_F(CommandLine, DoctorFindsWhatIsHere) {
  auto result = tilepilot({"doctor", "--json"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_TRUE(json::parse(result.out)["ok"]);
}

}  // namespace
}  // namespace tilepilot
