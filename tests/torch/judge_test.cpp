// The judge on candidates that cheat, fail or are honest. Each file of tests/torch/candidates says in its first lines
// which model it claims to replace and what it deserves:
//   # model: scale_rows
//   # expect: OUTCOME[|OUTCOME][: text that the verdict contains, or @LINE]
//   # time_limit: seconds
// They get the same verdicts on a GPU, where one is; `# expect_gpu:` says where another one is deserved there.
#include "eval/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "eval/torch/gpu.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;

struct CandidateFile {
  std::string name, source, model;
  struct Deserved {
    std::vector<std::string> outcomes;
    std::string text;
  };
  Deserved deserved, deserved_on_gpu;
  double time_limit_s = 60;
};

// The rest of the line that starts with `key`, or nothing.
std::string header(const std::string& source, const std::string& key) {
  size_t begin = source.find(key);
  if (begin == std::string::npos) return "";
  begin += key.size();
  return source.substr(begin, source.find('\n', begin) - begin);
}

CandidateFile::Deserved read_deserved(const std::string& expect) {
  CandidateFile::Deserved deserved;
  size_t colon = expect.find(": ");
  if (colon != std::string::npos) deserved.text = expect.substr(colon + 2);
  std::stringstream outcomes(expect.substr(0, colon));
  for (std::string outcome; std::getline(outcomes, outcome, '|');) deserved.outcomes.push_back(outcome);
  return deserved;
}

CandidateFile read_candidate(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  CandidateFile candidate{path.stem().string(), text.str(), header(text.str(), "# model: "), {}, {}};
  candidate.deserved = read_deserved(header(candidate.source, "# expect: "));
  const std::string on_gpu = header(candidate.source, "# expect_gpu: ");
  candidate.deserved_on_gpu = on_gpu.empty() ? candidate.deserved : read_deserved(on_gpu);
  auto limit = header(candidate.source, "# time_limit: ");
  if (!limit.empty()) candidate.time_limit_s = std::stod(limit);
  return candidate;
}

// Candidates for one model after the other, in groups: a judge stays open over the candidates of its group.
std::vector<std::vector<CandidateFile>> candidate_groups() {
  constexpr size_t kAtMost = 8;
  std::map<std::string, std::vector<CandidateFile>> of_model;
  for (auto& entry : std::filesystem::directory_iterator(TILEPILOT_SOURCE_DIR "/tests/torch/candidates")) {
    CandidateFile candidate = read_candidate(entry.path());
    of_model[candidate.model].push_back(std::move(candidate));
  }
  std::vector<std::vector<CandidateFile>> groups(1);
  for (auto& [model, candidates] : of_model) {
    std::sort(candidates.begin(), candidates.end(), [](auto& a, auto& b) { return a.name < b.name; });
    for (CandidateFile& candidate : candidates) {
      if (groups.back().size() == kAtMost) groups.emplace_back();
      groups.back().push_back(std::move(candidate));
    }
  }
  return groups;
}

JudgeOptions judge_options() {
  JudgeOptions options;
  options.worker = std::string(TILEPILOT_BINARY_DIR) + "/tilepilot-worker";
  options.trials = 3;
  options.timing_samples = 9;
  options.timing_budget_s = 0.3;
  options.memory_limit_bytes = int64_t{2} << 30;
  options.cache = TILEPILOT_KERNEL_CACHE;
  return options;
}

std::unique_ptr<Judge> judge_for(const std::string& model, JudgeOptions options = judge_options()) {
  auto judge = open_judge(testing::exported("tests/torch/models/" + model + ".py", options.dtype), options);
  EXPECT_TRUE(judge.ok()) << judge.error().message;
  return judge.ok() ? *std::move(judge) : nullptr;
}

std::string show(const Verdict& verdict) { return to_json(verdict).dump(2); }

void expect_deserved(const CandidateFile::Deserved& deserved, const Verdict& verdict) {
  EXPECT_THAT(deserved.outcomes, ::testing::Contains(std::string(to_string(verdict.outcome)))) << show(verdict);
  if (deserved.text.rfind('@', 0) == 0) {
    EXPECT_GT(verdict.line, 0) << show(verdict);
    if (deserved.text.size() > 1) { EXPECT_EQ(verdict.line, std::stoi(deserved.text.substr(1))) << show(verdict); }
  } else {
    EXPECT_THAT(show(verdict), HasSubstr(deserved.text));
  }
  if (verdict.outcome == Outcome::verified) {
    EXPECT_TRUE(verdict.candidate && verdict.eager);
    EXPECT_GT(verdict.speedup(), 0);
    EXPECT_GT(verdict.generated_share, 0);
    EXPECT_LE(verdict.generated_share, 1);
    EXPECT_FALSE(verdict.kernels.empty());
    EXPECT_GT(verdict.speedup_low, 0);
    EXPECT_LE(verdict.speedup_low, verdict.speedup());
    EXPECT_GE(verdict.speedup_high, verdict.speedup());
  } else {
    EXPECT_FALSE(verdict.detail.empty());
  }
  EXPECT_EQ(verdict.outcome == Outcome::rejected, !verdict.guard.empty()) << show(verdict);
}

class Candidates : public ::testing::TestWithParam<std::vector<CandidateFile>> {
 protected:
  static void judge_all(const std::string& target);
};

void Candidates::judge_all(const std::string& target) {
  std::map<std::pair<std::string, double>, std::unique_ptr<Judge>> judges;
  for (const CandidateFile& candidate : GetParam()) {
    SCOPED_TRACE(candidate.name);
    const auto& deserved = target == "cpu" ? candidate.deserved : candidate.deserved_on_gpu;
    ASSERT_FALSE(deserved.outcomes.empty());
    auto& judge = judges[{candidate.model, candidate.time_limit_s}];
    auto options = judge_options();
    options.time_limit_s = candidate.time_limit_s;
    options.target = target;
    if (!judge) judge = judge_for(candidate.model, options);
    ASSERT_TRUE(judge);
    const auto verdict = judge->check({.source = candidate.source, .name = candidate.name + ".py"});
    expect_deserved(deserved, verdict);
    if (candidate.name.rfind("honest", 0) == 0) { EXPECT_FALSE(verdict.given_inputs_only) << show(verdict); }
    if (target != "cpu") { EXPECT_THAT(judge->target(), HasSubstr("cuda:")); }
  }
}

TEST_P(Candidates, GetTheVerdictTheyDeserve) { judge_all("cpu"); }

TEST_P(Candidates, GetTheVerdictTheyDeserveOnAGpu) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  judge_all("auto");
}

INSTANTIATE_TEST_SUITE_P(All, Candidates, ::testing::ValuesIn(candidate_groups()));

std::string candidate_source(const std::string& name) {
  return read_candidate(std::string(TILEPILOT_SOURCE_DIR) + "/tests/torch/candidates/" + name + ".py").source;
}

TEST(Judge, SaysWhereInTheSourceAnErrorIs) {
  auto judge = judge_for("scale_rows");
  auto verdict = judge->check({.source = candidate_source("fail_unknown_tile_name"), .name = "mine.py"});
  ASSERT_EQ(verdict.rendered.size(), verdict.diagnostics.size());
  ASSERT_FALSE(verdict.rendered.empty());
  EXPECT_THAT(verdict.rendered.back(), HasSubstr("mine.py"));
  EXPECT_GT(verdict.line, 0);
}

TEST(Judge, ReportsErrorsOfEveryTrial) {
  auto judge = judge_for("scale_rows");
  auto verdict = judge->check({.source = candidate_source("honest"), .time = false});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
  ASSERT_EQ(verdict.errors.size(), 3u);
  for (auto& error : verdict.errors) EXPECT_LE(error.max_abs, error.bound);
  EXPECT_FALSE(verdict.candidate);
  EXPECT_FALSE(verdict.degenerate);
}

TEST(Judge, WorksInReducedPrecision) {
  for (auto dtype : {"fp16", "bf16"}) {
    auto options = judge_options();
    options.dtype = dtype;
    auto judge = judge_for("scale_rows", options);
    std::string source = candidate_source("honest");
    std::string type = std::string(dtype) == "fp16" ? "float16" : "bfloat16";
    source.replace(source.find("dtype=\"float32\""), 15, "dtype=\"" + type + "\"");
    auto verdict = judge->check({.source = source, .time = false});
    EXPECT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
    auto wrong = judge->check({.source = candidate_source("fail_zeros"), .time = false});
    EXPECT_NE(wrong.outcome, Outcome::verified);
    // What the model itself would give, asked for in no other type.
    const std::string call = "(x, self.weight, self.bias)";
    auto widened = [&](const std::string& method) {
      return judge->check(
          {.source = std::string(source).replace(source.find(call), call.size(), call + method), .time = false});
    };
    verdict = widened(".float()");
    EXPECT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
    EXPECT_THAT(verdict.notes, ::testing::Contains(HasSubstr("the output is float32, as the model's own would be")));
    EXPECT_EQ(widened(".double()").outcome, Outcome::wrong_dtype);
    EXPECT_EQ(widened(".float() * 1.5").outcome, Outcome::wrong_values);
  }
}

std::string with_element_type(std::string source, const std::string& type) {
  return source.replace(source.find("dtype=\"float32\""), 15, "dtype=\"" + type + "\"");
}

TEST(Judge, HintsAt16BitWhenTheModelIsFloat32) {
  auto judge = judge_for("scale_rows");
  std::string source = with_element_type(candidate_source("honest"), "float16");
  const std::string call = "(x, self.weight, self.bias)";
  auto at = source.find(call);
  ASSERT_NE(at, std::string::npos);
  auto verdict_of = [&](const std::string& other) {
    return judge->check({.source = std::string(source).replace(at, call.size(), other), .time = false});
  };
  auto rounded = verdict_of("(x.half(), self.weight.half(), self.bias.half()).float()");
  EXPECT_EQ(rounded.outcome, Outcome::wrong_values) << show(rounded);
  EXPECT_THAT(rounded.notes, ::testing::Contains(HasSubstr("the kernel `main` works on float16 and the model's is "
                                                           "float32: if that is meant, judge with `--dtype fp16`")));
  auto typed = verdict_of("(x.half(), self.weight.half(), self.bias.half())");
  EXPECT_EQ(typed.outcome, Outcome::wrong_dtype) << show(typed);
  EXPECT_THAT(typed.notes, ::testing::Contains(HasSubstr("the output is float16 and the model's is float32")));
  auto zeros = judge->check({.source = candidate_source("fail_wrong_factor"), .time = false});
  EXPECT_THAT(zeros.notes, ::testing::Not(::testing::Contains(HasSubstr("--dtype"))));
}

TEST(Judge, SaysWhereEagerComputesInFloat32) {
  auto options = judge_options();
  options.dtype = "fp16";
  auto verdict = judge_for("pooled_volume", options)->check({.source = candidate_source("fail_syntax"), .time = false});
  EXPECT_THAT(verdict.notes, ::testing::Contains(HasSubstr("cannot run `aten::avg_pool3d` in float16 on the CPU")));
}

TEST(Judge, SaysWhichInputsAreFixed) {
  auto verdict = judge_for("fixed_rows")->check({.source = candidate_source("fail_syntax"), .time = false});
  EXPECT_THAT(verdict.notes, ::testing::Contains(HasSubstr("input 0 has the same values in every trial")));
  verdict = judge_for("scale_rows")->check({.source = candidate_source("fail_syntax"), .time = false});
  EXPECT_THAT(verdict.notes, ::testing::Not(::testing::Contains(HasSubstr("same values"))));
}

// With fixed inputs the timed calls hold nothing new.
TEST(Judge, fail_RemembersAnswersToFixedInputs) {
  auto judge = judge_for("fixed_rows");
  auto verdict = judge->check({.source = candidate_source("fail_cached_by_content")});
  EXPECT_EQ(verdict.outcome, Outcome::rejected) << show(verdict);
  EXPECT_THAT(verdict.guard, ::testing::AnyOf("remembers", "inconsistent", "reused_memory")) << show(verdict);
  verdict = judge->check({.source = candidate_source("honest")});
  EXPECT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
}

// Nothing of such inputs can change, so calls repeat: that is told.
TEST(Judge, SaysWhereCallsRepeat) {
  const char* const kProgram = R"(
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

@tilelang.jit(out_idx=[-1])
def rectified(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = T.max(X[bx * block + i, j], 0.0)
    return main

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(64, 128))

    def forward(self, rows):
        return rectified(96, 128)(self.table[rows])
)";
  const auto verdict = judge_for("fixed_integers")->check({.source = kProgram});
  EXPECT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
  EXPECT_THAT(verdict.notes, ::testing::Contains(HasSubstr("the same integers at each call")));
}

// All finalists in one session; one that fails there does not disturb the others.
TEST(Judge, ComparesFinalistsSideBySide) {
  auto judge = judge_for("scale_rows");
  const std::string honest = candidate_source("honest");
  auto verdicts = judge->compare(
      {{.source = honest}, {.source = candidate_source("fail_counts_calls")}, {.source = honest + "\n# another\n"}});
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_NE(verdicts[1].outcome, Outcome::verified) << show(verdicts[1]);  // by which call depends on the order
  for (auto* verdict : {&verdicts[0], &verdicts[2]}) {
    ASSERT_EQ(verdict->outcome, Outcome::verified) << show(*verdict);
    EXPECT_EQ(verdict->eager->median_us, verdicts[0].eager->median_us);
    EXPECT_LE(verdict->speedup_low, verdict->speedup_high);
    EXPECT_EQ(verdict->candidate->samples, verdict->eager->samples);
    // To the other one that was timed, by its place among the requests.
    ASSERT_EQ(verdict->paired.size(), 1u);
    EXPECT_EQ(verdict->paired[0].other, verdict == &verdicts[0] ? 2 : 0);
    EXPECT_LE(verdict->paired[0].low, verdict->paired[0].ratio);
    EXPECT_LE(verdict->paired[0].ratio, verdict->paired[0].high);
  }
  EXPECT_NEAR(verdicts[0].paired[0].ratio * verdicts[2].paired[0].ratio, 1, 1e-6);
  EXPECT_TRUE(judge->compare({}).empty());
}

// A guard that has not looked has caught nothing either.
TEST(Judge, CountsHowOftenEachGuardLooks) {
  auto judge = judge_for("scale_rows");
  auto verdict = judge->check({.source = candidate_source("honest")});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
  const int rounds = verdict.candidate->samples, trials = 3;
  auto& looked = verdict.guards_run;
  EXPECT_EQ(looked["no_kernel"], 1);
  EXPECT_GE(looked["decoy"], 2);
  EXPECT_GE(looked["remembers"], rounds);
  EXPECT_EQ(looked["clock"], rounds);
  for (auto guard : {"aliasing", "reused_memory"}) EXPECT_GE(looked[guard], trials + rounds) << guard;
  for (auto guard : {"inconsistent", "unwritten"}) EXPECT_GE(looked[guard], rounds) << guard;
  EXPECT_EQ(looked.count("aten_policy"), 0u);
  EXPECT_EQ(verdict_from_json(to_json(verdict)).guards_run, looked);

  auto options = judge_options();
  options.aten = "data";
  verdict = judge_for("scale_rows", options)->check({.source = candidate_source("honest"), .time = false});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
  EXPECT_GE(verdict.guards_run["aten_policy"], trials);
  EXPECT_EQ(verdict.guards_run.count("clock"), 0u);
}

// The protocol is for GPUs; its calls, and what is compared of them, are the same on a processor. Of models with a
// state the first call is compared, of others several.
TEST(Judge, TimesAsKernelBenchToo) {
  auto options = judge_options();
  options.kernelbench_timing = true;
  for (auto [model, program] : {std::pair{"scale_rows", "honest"},
                                {"scale_rows", "honest_keeps_by_object"},
                                {"batch_stats", "honest_running_statistics"}}) {
    auto verdict = judge_for(model, options)->check({.source = candidate_source(program)});
    ASSERT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
    ASSERT_TRUE(verdict.kernelbench_timing) << show(verdict);
    for (auto* times : {&verdict.kernelbench_timing->eager, &verdict.kernelbench_timing->candidate}) {
      EXPECT_EQ(times->trials, 100);
      EXPECT_GT(times->min_ms, 0);
      EXPECT_LE(times->min_ms, times->mean_ms);
      EXPECT_LE(times->mean_ms, times->max_ms);
    }
    EXPECT_GT(verdict.kernelbench_timing->speedup(), 0);
  }
}

TEST(Judge, ChecksWithoutTimesToo) {
  auto judge = judge_for("scale_rows");
  auto verdict = judge->check({.source = candidate_source("fail_decoy_kernel"), .time = false});
  EXPECT_EQ(verdict.guard, "decoy") << show(verdict);
  verdict = judge->check({.source = candidate_source("fail_kernel_times_zero"), .time = false});
  EXPECT_EQ(verdict.guard, "decoy") << show(verdict);
}

TEST(Judge, fail_InputsLargerThanTheMemoryLimit) {
  auto options = judge_options();
  options.memory_limit_bytes = 6 << 20;
  auto verdict = judge_for("many_rows", options)->check({.source = candidate_source("honest"), .time = false});
  EXPECT_EQ(verdict.outcome, Outcome::out_of_memory) << show(verdict);
}

TEST(Judge, MakesDoWithFewSamplesOfLongCalls) {
  auto options = judge_options();
  options.timing_budget_s = 1e-4;
  auto verdict = judge_for("scale_rows", options)->check({.source = candidate_source("honest")});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << show(verdict);
  ASSERT_TRUE(verdict.candidate);
  EXPECT_EQ(verdict.candidate->samples, 1);
  EXPECT_THAT(verdict.notes, ::testing::Contains(HasSubstr("timed with few samples")));
}

TEST(Judge, fail_NoReference) {
  auto judge = open_judge("/nowhere", judge_options());
  ASSERT_FALSE(judge.ok());
  EXPECT_EQ(judge.error().kind, DiagnosticKind::file_not_found);
}

TEST(Judge, fail_ReferenceOfAnotherType) {
  auto options = judge_options();
  options.dtype = "bf16";
  auto judge = open_judge(testing::exported("tests/torch/models/copies.py"), options);
  ASSERT_FALSE(judge.ok());
  EXPECT_EQ(judge.error().kind, DiagnosticKind::reference_invalid);
  EXPECT_THAT(judge.error().message, HasSubstr("exported as `model`, not as `bf16`"));
}

TEST(Judge, SaysWhatAutoHasComeTo) {
  auto options = judge_options();
  options.target = "auto";
  auto judge = judge_for("copies", options);
  ASSERT_TRUE(judge);
  EXPECT_THAT(judge->target(), libtorch_sees_gpu() ? HasSubstr("cuda:sm_") : HasSubstr("cpu"));
}

TEST(Judge, fail_TargetThatThisMachineLacks) {
  if (libtorch_sees_gpu()) GTEST_SKIP() << "there is a GPU";
  auto options = judge_options();
  options.target = "cuda:sm_90a";
  auto judge = open_judge(testing::exported("tests/torch/models/copies.py"), options);
  ASSERT_FALSE(judge.ok());
  EXPECT_THAT(judge.error().kind, ::testing::AnyOf(DiagnosticKind::driver_missing, DiagnosticKind::worker_unavailable));
}

TEST(Judge, fail_ReferenceThatCannotRun) {
  auto folder = testing::scratch("cannot-run") / "reference";
  std::filesystem::copy(testing::exported("tests/torch/models/copies.py"), folder);
  auto document = nlohmann::json::parse(std::ifstream(folder / "reference.json"));
  document["forward"]["nodes"][0]["op"] = "aten::no_such_operator";
  std::ofstream(folder / "reference.json") << document;
  auto judge = open_judge(folder, judge_options());
  ASSERT_FALSE(judge.ok());
  EXPECT_THAT(judge.error().message, HasSubstr("no_such_operator"));
}

}  // namespace
}  // namespace tilepilot::eval
