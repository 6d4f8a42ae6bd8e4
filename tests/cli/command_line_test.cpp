// The program as its users meet it: through the command line.
#include "tests/cli/command_line.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/source/file.h"

namespace tilepilot {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(CommandLine, HelpNamesEveryCommand) {
  auto result = tilepilot({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* command : {"generate", "check", "run", "compile", "corpus", "problem", "doctor"})
    EXPECT_THAT(result.out, HasSubstr(command));
}

TEST_F(CommandLine, FailUsage) {
  EXPECT_EQ(tilepilot({}).exit_code, 2);
  EXPECT_EQ(tilepilot({"generat"}).exit_code, 2);
  EXPECT_EQ(tilepilot({"generate"}).exit_code, 2);
  EXPECT_EQ(tilepilot({"generate", "x.py", "--author", "oracle"}).exit_code, 2);
  auto as_json = tilepilot({"generate", "--json"});
  EXPECT_EQ(as_json.exit_code, 2);
  json object = json::parse(as_json.out, nullptr, false);
  ASSERT_TRUE(object.is_object()) << as_json.out;
  EXPECT_EQ(object["errors"][0]["kind"], "bad_usage");
  auto target = tilepilot({"generate", model("matmul"), "--target", "cuda:sm_75"});
  EXPECT_EQ(target.exit_code, 2);
  EXPECT_THAT(target.err, HasSubstr("no code is written for `cuda:sm_75`"));
}

// generate

TEST_F(CommandLine, GenerateWritesAVerifiedProgramOnceIntoTheCorpus) {
  auto result = tilepilot({"generate", model("scale_softmax"), "-o", "fast.py", "--json", "--seed", "7", "--trials",
                           "2", "--time-limit", "100", "--memory", "2"});
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
  const json shown = json::parse(tilepilot({"corpus", "show", "scale_softmax", "--json"}).out)["entry"];
  EXPECT_EQ(shown["certificate"]["verdict"]["outcome"], "verified");
  EXPECT_THAT(shown["model_source"].get<std::string>(), HasSubstr("class Model"));
  EXPECT_EQ(shown["lineage"]["author"], "builtin");
  EXPECT_FALSE(shown["inputs"].empty());
  EXPECT_GT(shown["roofline"].get<double>(), 0);
  EXPECT_THAT(shown["toolchain"]["tilepilot"].get<std::string>(), HasSubstr("tilepilot"));
  EXPECT_THAT(hits[0]["reason"].get<std::string>(), HasSubstr("softmax"));
}

// Reference, eager and candidate all run in the type that was asked for, what the model computes in float32 included.
TEST_F(CommandLine, GenerateInReducedPrecision) {
  auto result = tilepilot({"generate", model("upcast_norm"), "-o", "fast.py", "--json", "--dtype", "bf16", "--attempts",
                           "1", "--trials", "2"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  std::string program;
  ASSERT_TRUE(read_file(folder_ / "fast.py", program));
  EXPECT_THAT(program, AllOf(HasSubstr("bfloat16"), HasSubstr("float32")));
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

// Before any work is done.
TEST_F(CommandLine, FailOutputUnwritable) {
  fs::create_directory(folder_ / "folder");
  for (const char* output : {"/proc/nothing.py", "no/such/folder/out.py", "folder"}) {
    auto result = tilepilot({"generate", model("scale_softmax"), "-o", output});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("cannot write `" + std::string(output) + "`"), Not(HasSubstr("exporting"))));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(CommandLine, FailOutputIsTheModel) {
  fs::copy(model("scale_softmax"), folder_ / "mine.py");
  auto result = tilepilot({"generate", "mine.py", "-o", "./mine.py"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("is the model itself"), Not(HasSubstr("exporting"))));
}

TEST_F(CommandLine, FailModelThatTheAuthorCannotFollow) {
  auto result = tilepilot({"generate", model("fail_in_place"), "-o", "out.py", "--quiet"});
  EXPECT_EQ(result.exit_code, 2) << all(result);
  EXPECT_THAT(result.err, AllOf(HasSubstr("in place"), HasSubstr("fail_in_place.py:7"), HasSubstr("--author llm")));
  auto as_json = tilepilot({"generate", model("fail_in_place"), "-o", "out.py", "--json"});
  json errors = json::parse(as_json.out)["errors"];
  ASSERT_EQ(errors.size(), 1u) << as_json.out;
  EXPECT_EQ(errors[0]["kind"], "model_invalid");
  EXPECT_EQ(errors[0]["line"], 7);
}

TEST_F(CommandLine, FailTensorsWithoutElements) {
  auto result = tilepilot({"generate", model("no_elements"), "-o", "out.py"});
  EXPECT_EQ(result.exit_code, 1) << all(result);
  EXPECT_THAT(result.out, HasSubstr("the author sees nothing in this model"));
}

TEST_F(CommandLine, FailEndlessImport) {
  auto result = tilepilot({"generate", model("fail_endless_import"), "--minutes", "0.05", "-o", "out.py"});
  EXPECT_EQ(result.exit_code, 2) << all(result);
  EXPECT_THAT(result.err, HasSubstr("exporting the model took longer than 3 s"));
}

TEST_F(CommandLine, FailNumberOfThreads) {
  for (const char* threads : {"-3", "0", "100000"}) {
    auto result = tilepilot({"--threads", threads, "check", "--reference", model("matmul"), "out.py"});
    EXPECT_EQ(result.exit_code, 2) << all(result);
    EXPECT_THAT(result.err, HasSubstr("--threads"));
  }
}

TEST_F(CommandLine, FailNothingToFuse) {
  auto result = tilepilot({"generate", model("fail_only_sorts"), "-o", "out.py"});
  EXPECT_EQ(result.exit_code, 1) << all(result);
  EXPECT_THAT(result.out, HasSubstr("the author sees nothing in this model"));
  auto as_json = tilepilot({"generate", model("fail_only_sorts"), "-o", "out.py", "--json"});
  EXPECT_THAT(json::parse(as_json.out)["reason"].get<std::string>(), HasSubstr("sees nothing in this model"));
}

TEST_F(CommandLine, FailLanguageModelWithoutEndpointNetworkOrRun) {
  auto incomplete = tilepilot({"generate", model("matmul"), "--author", "llm"});
  EXPECT_EQ(incomplete.exit_code, 2);
  EXPECT_THAT(incomplete.err, HasSubstr("needs `--llm-url` and `--llm-model`"));
  auto replay = tilepilot({"generate", model("matmul"), "--author", "llm", "--replay", "12"});
  EXPECT_NE(replay.exit_code, 0);
  EXPECT_THAT(replay.err, HasSubstr("no run 12"));
}

TEST_F(CommandLine, FailLanguageModelOptionsForAnotherAuthor) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--replay", "99"},
                                                  {"--llm-url", "http://localhost:1/v1", "--author", "builtin"},
                                                  {"--llm-model", "some"},
                                                  {"--dollars", "2"}}) {
    std::vector<std::string> arguments = {"generate", model("matmul")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    auto result = tilepilot(arguments);
    EXPECT_EQ(result.exit_code, 2) << options[0];
    EXPECT_THAT(result.err, AllOf(HasSubstr("`" + options[0] + "`"), HasSubstr("--author llm")));
  }
}

// check

TEST_F(CommandLine, CheckVerifiesACorrectCandidate) {
  auto result = check("good_matmul", {"--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_EQ(json::parse(result.out)["outcome"], "verified");
}

// A program for float32 data that works in 16 bit: on 16-bit data it raises, in float32 it is not exact enough.
TEST_F(CommandLine, CheckIn16BitTakesProgramsForTheModelsOwnData) {
  EXPECT_EQ(check("good_matmul_in_half", {"--no-timing"}).exit_code, 1);
  auto result = check("good_matmul_in_half", {"--dtype", "fp16", "--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json verdict = json::parse(result.out);
  EXPECT_THAT(
      verdict["notes"][0].get<std::string>(),
      AllOf(HasSubstr("judged on the model's own data, with the tolerance of fp16"), HasSubstr("runtime_error")));
  auto wrong = check("fail_wrong_values", {"--dtype", "fp16", "--no-timing"});
  EXPECT_EQ(wrong.exit_code, 1) << all(wrong);
}

TEST_F(CommandLine, CheckTellsWarningsThatMayExplainWrongValues) {
  const auto wrong = check("fail_begins_near_end");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(all(wrong),
              AllOf(HasSubstr("wrong_values"), HasSubstr("fail_begins_near_end.py:17:24: warning: the index "
                                                         "-3 on axis 1 of `A` counts from the end")));
}

TEST_F(CommandLine, CheckKeepsCompiledKernels) {
  const fs::path cache = folder_ / "cache";
  auto libraries = [&] {
    std::vector<fs::path> found;
    for (const auto& item : fs::recursive_directory_iterator(cache))
      if (item.path().extension() == ".so") found.push_back(item.path());
    return found;
  };
  auto result = check("good_matmul", {}, {"TILEPILOT_CACHE=" + cache.string()});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_EQ(libraries().size(), 1u);
  EXPECT_TRUE(fs::is_empty(cache / "work"));
  auto again = check("good_matmul", {}, {"TILEPILOT_CACHE=" + cache.string()});
  EXPECT_EQ(again.exit_code, 0) << all(again);
  EXPECT_EQ(libraries().size(), 1u);
}

TEST_F(CommandLine, CheckTimesTorchCompileWhenAsked) {
  auto result =
      tilepilot({"check", candidate("good_matmul"), "-r", model("matmul"), "--baselines", "compile", "--trials", "1"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("\n  torch.compile "), HasSubstr("\n  max-autotune "),
                                HasSubstr("compiled in"), HasSubstr("mode, the faster one")));
  std::ifstream file(folder_ / "good_matmul.cert.json");
  ASSERT_TRUE(file) << all(result);
  const json verdict = json::parse(file)["verdict"];
  for (const char* mode : {"default", "max-autotune"}) {
    ASSERT_TRUE(verdict["compiled"].contains(mode)) << verdict.dump(2);
    EXPECT_EQ(verdict["compiled"][mode]["samples"], verdict["eager"]["samples"]);
    EXPECT_GT(verdict["compiled"][mode]["median_us"].get<double>(), 0);
    EXPECT_GT(verdict["compiled"][mode]["compile_s"].get<double>(), 0);
  }
  EXPECT_EQ(verdict["errors"].size(), 1u);
}

TEST_F(CommandLine, CheckNamesEachDefectWithItsLine) {
  struct Case {
    const char* candidate;
    std::vector<const char*> says;
  };
  for (const Case& wrong : {
           Case{"fail_syntax", {"fail_syntax.py:22"}},
           Case{"fail_unknown_name", {"claer", "did you mean", "clear", "fail_unknown_name.py:15"}},
           Case{"fail_gemm_shape", {"40", "32", "fail_gemm_shape.py:19"}},
           Case{"fail_copy_extents", {"16", "32", "fail_copy_extents.py:21"}},
           Case{"fail_opens_file", {"open", "fail_opens_file.py:25"}},
       }) {
    auto result = check(wrong.candidate);
    EXPECT_EQ(result.exit_code, 1) << wrong.candidate << "\n" << all(result);
    for (const char* text : wrong.says) EXPECT_THAT(all(result), HasSubstr(text)) << wrong.candidate;
  }
}

// An answer that anything trivial would give too is said to be one, with the reason.
TEST_F(CommandLine, CheckTellsWhatIsDegenerate) {
  const fs::path torch = fs::path(TILEPILOT_SOURCE_DIR) / "tests/torch";
  auto result = tilepilot({"check", (torch / "candidates/honest_copy_is_degenerate.py").string(), "-r",
                           (torch / "models/copies.py").string(), "--no-timing"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("verified, but degenerate"), HasSubstr("note  ")));
}

TEST_F(CommandLine, CheckSaysOnlyWhatItKnows) {
  auto result = check("good_matmul");
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("largest error"), Not(HasSubstr(" at  of")), Not(HasSubstr("% of the time"))));
}

TEST_F(CommandLine, CheckReportsWhereValuesAreWrong) {
  auto result = check("fail_wrong_values");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(all(result), AllOf(HasSubstr("wrong_values"), HasSubstr("largest error")));
}

TEST_F(CommandLine, CheckStopsAKernelThatLoopsForever) {
  auto result = check("fail_endless_kernel", {"--time-limit", "3"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(all(result), AllOf(HasSubstr("timed_out"), HasSubstr("line 31")));
}

TEST_F(CommandLine, FailCheckWithoutCompiler) {
  auto result = check("good_matmul", {}, {"PATH=/nowhere", "TILEPILOT_CACHE=" + (folder_ / "cache").string()});
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

TEST_F(CommandLine, CorpusMovesAndProvesItself) {
  ASSERT_EQ(tilepilot({"corpus", "export", "corpus.jsonl", "--json"}).exit_code, 0);
  std::string text;
  ASSERT_TRUE(read_file(folder_ / "corpus.jsonl", text));
  // `-` is standard output, in which nothing else is then.
  EXPECT_EQ(tilepilot({"corpus", "export", "-"}).out, text);
  EXPECT_EQ(tilepilot({"corpus", "export", "-", "--json"}).exit_code, 2);
  // An entry whose program computes something else joins a corpus that has nothing but it and the seeds.
  std::istringstream lines(text);
  std::string header, line, kept;
  std::getline(lines, header);
  while (std::getline(lines, line))
    if (json entry = json::parse(line); entry["name"] == "bias_gelu") {
      entry["name"] = "poisoned";
      entry["uid"] = "p";
      entry["summary"] = "red \x1b[31m\nrow";
      std::string source = entry["source"];
      const size_t model = source.find("class ModelNew");
      source = source.substr(0, model) + "class ModelNew(Model):\n    def forward(self, x):\n        return x * 2\n";
      entry["source"] = source;
      kept = entry.dump();
    }
  ASSERT_FALSE(kept.empty());
  std::ofstream(folder_ / "poisoned.jsonl") << header << "\n" << kept << "\n";
  auto imported = tilepilot({"corpus", "import", "poisoned.jsonl", "--json"});
  ASSERT_EQ(imported.exit_code, 0) << all(imported);
  EXPECT_EQ(json::parse(imported.out)["added"], 1);
  EXPECT_EQ(json::parse(tilepilot({"corpus", "import", "corpus.jsonl", "--json"}).out)["added"], 0);
  auto proven = tilepilot({"corpus", "verify", "poisoned", "bias_gelu", "--json"});
  EXPECT_EQ(proven.exit_code, 1) << all(proven);
  const json report = json::parse(proven.out);
  EXPECT_EQ(report["failed"], 1) << all(proven);
  EXPECT_EQ(report["failures"][0]["name"], "poisoned");
  EXPECT_EQ(report["held"], 1) << all(proven);
  EXPECT_EQ(tilepilot({"corpus", "verify", "nothing"}).exit_code, 2);
  EXPECT_THAT(tilepilot({"corpus", "list"}).out, HasSubstr("[in quarantine] red \\x1b[31m row\n"));
  EXPECT_THAT(tilepilot({"corpus", "search", "--text", "poisoned"}).out, Not(HasSubstr("poisoned")));
  EXPECT_EQ(tilepilot({"corpus", "import", "absent.jsonl"}).exit_code, 2);
  EXPECT_THAT(tilepilot({"corpus", "index"}).out, HasSubstr("flat index of 16 entries with 15 structures"));
}

// compile, run, doctor

TEST_F(CommandLine, CompileEmitsEveryStage) {
  std::string file = (tests() / "candidates/good_matmul.py").string();
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
  EXPECT_THAT(refused.err, HasSubstr("fail_script.py:2"));
  EXPECT_THAT(refused.err, HasSubstr("`os.remove` is not allowed"));
}

TEST_F(CommandLine, RunGivesAScriptItsArguments) {
  std::ofstream(folder_ / "script.py") << "import argparse, sys\n"
                                          "parser = argparse.ArgumentParser()\n"
                                          "parser.add_argument('--m', type=int, default=8)\n"
                                          "parser.add_argument('--json', action='store_true')\n"
                                          "print(parser.parse_args(), len(sys.argv))\n";
  EXPECT_EQ(tilepilot({"run", "script.py"}).out, "Namespace(m=8, json=False) 1\n");
  EXPECT_EQ(tilepilot({"run", "script.py", "--m", "1024", "--json"}).out, "Namespace(m=1024, json=True) 4\n");
  EXPECT_EQ(tilepilot({"run", "--threads", "1", "script.py", "--", "--m", "2"}).out, "Namespace(m=2, json=False) 3\n");
  auto help = tilepilot({"run", "script.py", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("usage: script.py [-h] [--m M] [--json]"));
  auto bad = tilepilot({"run", "script.py", "--m", "many"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("script.py: error: argument --m: invalid int value: 'many'"));
}

TEST_F(CommandLine, RunEndsWithTheCodeOfTheScript) {
  std::ofstream(folder_ / "script.py") << "import sys\n"
                                          "code = sys.argv[1]\n"
                                          "sys.exit(int(code) if code.isdigit() else code)\n";
  EXPECT_EQ(tilepilot({"run", "script.py", "3"}).exit_code, 3);
  EXPECT_EQ(tilepilot({"run", "script.py", "0"}).exit_code, 0);
  auto told = tilepilot({"run", "script.py", "no device"});
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_EQ(told.err, "no device\n");
}

TEST_F(CommandLine, RunBoundsBenchmarks) {
  std::ofstream(folder_ / "script.py") << "import sys\n"
                                          "from tilelang.profiler import do_bench\n"
                                          "calls = []\n"
                                          "def work():\n"
                                          "  calls.append(1)\n"
                                          "  sum(range(20000))\n"
                                          "do_bench(work, _n_repeat=3000)\n"
                                          "print(len(calls), sys.argv[1:])\n";
  auto once = tilepilot({"run", "--bench-time", "0", "script.py", "--bench-time", "7"});
  EXPECT_EQ(once.out, "1 ['--bench-time', '7']\n") << all(once);
  EXPECT_THAT(once.err, HasSubstr("`do_bench` makes one call only: a benchmark has 0 ms here"));
  auto bounded = tilepilot({"run", "--bench-time=20", "script.py"});
  EXPECT_LT(std::atoi(bounded.out.c_str()), 1000) << all(bounded);
  EXPECT_THAT(bounded.err, HasSubstr("of 3000 calls: a benchmark has 20 ms here"));
  EXPECT_EQ(tilepilot({"run", "--autotune-limit", "0", "script.py"}).exit_code, 2);
}

TEST_F(CommandLine, CompileStagesTheFirstConfigurationOfATunedProgram) {
  std::ofstream(folder_ / "tuned.py") << "import tilelang\n"
                                         "import tilelang.language as T\n"
                                         "import tilelang.testing\n"
                                         "@tilelang.autotune(configs=[{'block': 16}, {'block': 32}])\n"
                                         "@tilelang.jit(out_idx=[-1])\n"
                                         "def fill(N, block=None):\n"
                                         "  @T.prim_func\n"
                                         "  def main(A: T.Tensor((N,), 'float32')):\n"
                                         "    with T.Kernel(N // block, threads=32) as bx:\n"
                                         "      for i in T.Parallel(block):\n"
                                         "        A[bx * block + i] = 1.0\n"
                                         "  return main\n";
  auto first = tilepilot({"compile", "tuned.py", "--call", "fill(64)", "--emit", "ir"});
  EXPECT_EQ(first.exit_code, 0) << all(first);
  EXPECT_THAT(first.out, HasSubstr("kernel bx in 4 threads 32"));
  auto given = tilepilot({"compile", "tuned.py", "--call", "fill(64, block=32)", "--emit", "ir"});
  EXPECT_THAT(given.out, HasSubstr("kernel bx in 2 threads 32")) << all(given);
}

TEST_F(CommandLine, RunAndCompileImportWhatLiesBesideTheScript) {
  std::filesystem::create_directories(folder_ / "program");
  std::ofstream(folder_ / "program" / "sizes.py") << "ROWS = 64\n";
  std::ofstream(folder_ / "program" / "script.py") << "import tilelang.language as T\n"
                                                      "import torch\n"
                                                      "import triton\n"
                                                      "from sizes import ROWS\n"
                                                      "def reference(x: torch.Tensor | None = None): return x\n"
                                                      "@T.prim_func\n"
                                                      "def fill(A: T.Tensor((ROWS,), 'float32')):\n"
                                                      "  with T.Kernel(1, threads=32) as bx:\n"
                                                      "    for i in T.Parallel(ROWS):\n"
                                                      "      A[i] = 1.0\n"
                                                      "if __name__ == '__main__': triton.cdiv(ROWS, 2)\n";
  auto compiled = tilepilot({"compile", "program/script.py", "--emit", "ir"});
  EXPECT_EQ(compiled.exit_code, 0) << all(compiled);
  auto ran = tilepilot({"run", "program/script.py"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("`triton.cdiv` cannot be used: the module `triton` is not available here"));
}

TEST_F(CommandLine, FailRunWithWhatAScriptCannotSee) {
  std::ofstream(folder_ / "script.py") << "print(1)\n";
  EXPECT_EQ(tilepilot({"run", "--seed", "3", "script.py"}).exit_code, 2);
  auto dtype = tilepilot({"run", "--dtype", "fp16", "script.py"});
  EXPECT_EQ(dtype.exit_code, 2);
  EXPECT_THAT(dtype.err, HasSubstr("`run` has no use for `--dtype`"));
}

TEST_F(CommandLine, CompileOfNothingIsNothing) {
  std::ofstream(folder_ / "empty.py") << "";
  auto result = tilepilot({"compile", "empty.py", "--emit", "tree"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
}

TEST_F(CommandLine, DoctorFindsWhatIsHere) {
  auto result = tilepilot({"doctor", "--json"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_TRUE(json::parse(result.out)["ok"]);
}

}  // namespace
}  // namespace tilepilot
