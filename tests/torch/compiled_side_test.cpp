// torch.compile as a side of the rounds: what is reported of it, and of what fails there. Inductor takes long, so what
// stands here is made up; a test of the command line takes the real one (CheckTimesTorchCompileWhenAsked).
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "eval/judge.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class Compiled : public ::testing::Test {
 protected:
  // A judge whose exporter compiles so: the body of `compile(model, mode)`, which gives what is called.
  std::unique_ptr<Judge> judge(const std::string& model, const std::string& body, JudgeOptions options = {}) {
    const auto script =
        testing::scratch(::testing::UnitTest::GetInstance()->current_test_info()->name()) / "exporter.py";
    std::ofstream(script) << fmt::format(
        "import runpy, sys, time\nimport torch\ndef compile(model, mode='default'):\n{}\n"
        "torch.compile = compile\nrunpy.run_path({}, run_name='__main__')\n",
        body, nlohmann::json(TILEPILOT_SOURCE_DIR "/scripts/export_reference.py").dump());
    options.worker = std::string(TILEPILOT_BINARY_DIR) + "/tilepilot-worker";
    options.cache = TILEPILOT_KERNEL_CACHE;
    options.trials = 2;
    options.timing_samples = 9;
    options.timing_budget_s = 0.3;
    options.baseline_compile = true;
    if (options.python.empty()) options.python = TILEPILOT_PYTHON;
    options.exporter = script;
    auto opened = open_judge(testing::exported("tests/torch/models/" + model + ".py"), options);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return *std::move(opened);
  }

  static std::string candidate(const std::string& name) {
    std::ifstream file(fmt::format("{}/tests/torch/candidates/{}.py", TILEPILOT_SOURCE_DIR, name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

// What calls return, with which weights, is compared with eager's.
TEST_F(Compiled, TakesPartInTheRoundsInBothModes) {
  setenv("OMP_WAIT_POLICY", "ACTIVE", 1);  // what no other side gets
  setenv("OMP_NUM_THREADS", "2", 1);       // what all sides get
  auto judge = this->judge("scale_rows",
                           "  assert torch.get_num_threads() == 2, 'threads'\n"
                           "  import os\n"
                           "  assert sorted(name for name in os.environ if name.startswith(('OMP_', 'GOMP_'))) == "
                           "['GOMP_SPINCOUNT', 'OMP_NUM_THREADS'], os.environ\n"
                           "  return model");
  const auto verdict = judge->check({.source = candidate("honest")});
  unsetenv("OMP_WAIT_POLICY");
  ASSERT_EQ(verdict.outcome, Outcome::verified) << verdict.detail;
  ASSERT_EQ(verdict.compiled.size(), 2u) << ::testing::PrintToString(verdict.notes);
  EXPECT_EQ(verdict.compiled[0].mode, "default");
  EXPECT_EQ(verdict.compiled[1].mode, "max-autotune");
  for (const CompiledTiming& each : verdict.compiled) {
    EXPECT_EQ(each.timing.samples, verdict.eager->samples);
    EXPECT_GT(each.timing.median_us, 0);
    EXPECT_GE(each.timing.high_us, each.timing.low_us);
    EXPECT_NEAR(each.speedup, each.timing.median_us / verdict.candidate->median_us, 1e-6 * each.speedup);
    EXPECT_LE(each.speedup_low, each.speedup);
    EXPECT_GE(each.speedup_high, each.speedup);
    EXPECT_GT(each.compile_s, 0);
  }
  // Finalists are compared with the processes that are there.
  const auto again = judge->compare({{.source = candidate("honest")}, {.source = candidate("honest")}});
  for (auto& each : again) EXPECT_EQ(each.compiled.size(), 2u) << ::testing::PrintToString(each.notes);
}

TEST_F(Compiled, TheSlowerModeIsNotTheBetter) {
  auto judge = this->judge("scale_rows",
                           "  def slow(*inputs):\n    time.sleep(2e-3)\n    return model(*inputs)\n"
                           "  return model if mode == 'max-autotune' else slow");
  const auto verdict = judge->check({.source = candidate("honest")});
  ASSERT_EQ(verdict.compiled.size(), 2u) << ::testing::PrintToString(verdict.notes);
  EXPECT_EQ(verdict.best_compiled()->mode, "max-autotune");
  EXPECT_GT(verdict.compiled[0].timing.median_us, 2000);
}

TEST_F(Compiled, KeepsTheModelsState) {
  auto judge = this->judge("batch_stats", "  return model");
  const auto verdict = judge->check({.source = candidate("honest_running_statistics")});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << verdict.detail;
  EXPECT_EQ(verdict.compiled.size(), 2u) << ::testing::PrintToString(verdict.notes);
}

TEST_F(Compiled, WrongOutputsAreNoBaseline) {
  auto judge = this->judge("scale_rows", "  return model if mode == 'default' else lambda *inputs: model(*inputs) + 1");
  const auto verdict = judge->check({.source = candidate("honest")});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << verdict.detail;
  ASSERT_EQ(verdict.compiled.size(), 1u);
  EXPECT_EQ(verdict.compiled[0].mode, "default");
  EXPECT_THAT(verdict.notes, Contains(HasSubstr("(mode max-autotune) could not be timed: it computes something else")));
}

// Old weights must not pass: in some rounds there are others than those that it was compiled with.
TEST_F(Compiled, WeightsThatItKeepsAreNoticed) {
  auto judge = this->judge("scale_rows",
                           "  import copy\n  own = copy.deepcopy(model)\n  return own if mode == 'default' else model");
  judge->check({.source = candidate("honest")});
  const auto verdicts = judge->compare({{.source = candidate("honest")}, {.source = candidate("honest")}});
  for (auto& verdict : verdicts) {
    ASSERT_EQ(verdict.compiled.size(), 1u) << ::testing::PrintToString(verdict.notes);
    EXPECT_EQ(verdict.compiled[0].mode, "max-autotune");
  }
}

TEST_F(Compiled, WhatFailsIsANoteWithTheReason) {
  auto judge = this->judge("scale_rows",
                           "  if mode == 'default':\n    raise RuntimeError('Inductor lowered nothing')\n"
                           "  sys.exit(3)");
  const auto verdict = judge->check({.source = candidate("honest")});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << verdict.detail;
  EXPECT_TRUE(verdict.compiled.empty());
  EXPECT_THAT(verdict.notes, Contains(HasSubstr("`RuntimeError`: Inductor lowered nothing")));
  EXPECT_THAT(verdict.notes, Contains(HasSubstr("(mode max-autotune) could not be timed: Python ended")));
}

TEST_F(Compiled, CompilingHasALimitOfItsOwn) {
  JudgeOptions options;
  options.compile_limit_s = 3;
  auto judge = this->judge("scale_rows", "  if mode == 'default':\n    time.sleep(1000)\n  return model", options);
  const auto verdict = judge->check({.source = candidate("honest")});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << verdict.detail;
  EXPECT_THAT(verdict.notes,
              Contains(HasSubstr("(mode default) could not be timed: Python did not answer within 3 s")));
}

TEST_F(Compiled, SaysThatThereIsNoPython) {
  JudgeOptions options;
  options.python = "/nowhere/python";
  const auto verdict = judge("scale_rows", "  return model", options)->check({.source = candidate("honest")});
  ASSERT_EQ(verdict.outcome, Outcome::verified) << verdict.detail;
  EXPECT_TRUE(verdict.compiled.empty());
  EXPECT_THAT(verdict.notes, Contains(HasSubstr("`torch.compile` (mode default) could not be timed")));
}

// Large tensors are no new pages at each call, as they are none on the other sides.
TEST(CompiledProcess, KeepsFreedMemory) {
  const auto ran = testing::run_python("tests/torch/freed_memory.py", {TILEPILOT_SOURCE_DIR "/scripts"});
  EXPECT_EQ(ran.output, "True True\n");
}

// Or a GPU waits for Python in the middle of what is timed.
TEST(CompiledProcess, LetsTheHostGetAheadOfTheGpu) {
  const auto ran = testing::run_python("tests/torch/compiled_stopwatch.py", {TILEPILOT_SOURCE_DIR "/scripts"});
  EXPECT_EQ(ran.output, "1 14\n2 14\n3 14\n8 4307\n");
}

}  // namespace
}  // namespace tilepilot::eval
