// What a language model hears of its attempts, and what it shall do next.
#include "agent/llm/feedback.h"

#include <gmock/gmock.h>

#include "tests/agent/attempts.h"

namespace tilepilot::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(NextStep, MendsThenBeginsAnewThenImprovesTheBest) {
  using Kind = NextStep::Kind;
  using eval::Outcome;
  auto step = [](const std::vector<Attempt>& history, size_t first = 0) {
    const NextStep next = next_step(history, first);
    return std::pair(next.kind, next.base);
  };
  const Attempt wrong = attempt_with(Outcome::wrong_values), crashed = attempt_with(Outcome::crashed);
  const Attempt slow = verified_in(50, "slow"), fast = verified_in(40, "fast");
  EXPECT_EQ(step({wrong}), std::pair(Kind::repair, std::optional<size_t>(0)));
  EXPECT_EQ(step({wrong, crashed, wrong}), std::pair(Kind::repair, std::optional<size_t>(2)));
  EXPECT_EQ(step({wrong, wrong, wrong}), std::pair(Kind::restart, std::optional<size_t>()));
  EXPECT_EQ(step({slow, fast, wrong}), std::pair(Kind::repair, std::optional<size_t>(2)));
  EXPECT_EQ(step({slow, fast, wrong, wrong, wrong}), std::pair(Kind::improve, std::optional<size_t>(0)));
  EXPECT_EQ(step({fast, slow}), std::pair(Kind::improve, std::optional<size_t>(0)));
  EXPECT_EQ(step({fast, slow, slow}), std::pair(Kind::improve, std::optional<size_t>(1)));  // the second best
  EXPECT_EQ(step({slow, fast, wrong}, 3), std::pair(Kind::improve, std::optional<size_t>(1)));
}

TEST(NextStep, CountsVariantsWithWhatTheyVary) {
  const Attempt fast = verified_in(50, program_number(1)), faster = verified_in(40, program_number(2));
  const Attempt broken = variant_of(0, attempt_with(eval::Outcome::compile_error, program_number(3)));
  // No variant is mended, and the fastest is the base.
  const NextStep step = next_step({fast, variant_of(0, faster), broken});
  EXPECT_EQ(step.kind, NextStep::Kind::improve);
  EXPECT_EQ(step.base, std::optional<size_t>(1));
  EXPECT_EQ(attempts_without_progress({fast, broken, broken, broken}), 0);
  const std::string told = join(feedback_prompt({fast, variant_of(0, faster), broken}, step, {}));
  EXPECT_THAT(
      told, AllOf(HasSubstr("This attempt is attempt 1: verified"), HasSubstr("The base is attempt 2, the best so far"),
                  HasSubstr("open numbers have the values"), Not(HasSubstr("left aside"))));
  // The second best is another idea, not another number.
  const Attempt other = verified_in(45, program_number(4)), worse = verified_in(90, program_number(5));
  const std::vector<Attempt> stuck = {fast, variant_of(0, faster), other, worse};
  EXPECT_EQ(next_step(stuck).base, std::optional<size_t>(2));
  EXPECT_EQ(next_step({fast, variant_of(0, faster), worse, worse}).base, std::optional<size_t>(1));
}

// Such a program counts for little: it is mended before it is made faster.
TEST(NextStep, MendsWhatIsRightOnTheGivenInputsAlone) {
  Attempt narrow = verified_in(10, program_number(1));
  narrow.verdict.given_inputs_only = true;
  narrow.verdict.notes = {"verified for these inputs only: it fails with heavy tails"};
  const NextStep step = next_step({narrow, attempt_with(eval::Outcome::wrong_values)});
  EXPECT_EQ(step.kind, NextStep::Kind::repair);
  EXPECT_EQ(step.base, std::optional<size_t>(0));
  EXPECT_THAT(join(feedback_prompt({narrow}, next_step({narrow}), {})),
              AllOf(HasSubstr("It failed: right on inputs like the given ones alone"), HasSubstr("heavy tails"),
                    HasSubstr("mend it with the smallest change")));
  EXPECT_EQ(next_step({verified_in(50, program_number(2)), narrow}).kind, NextStep::Kind::repair);
}

TEST(NextStep, MendsWhatCameFurthest) {
  const Attempt syntax = attempt_with(eval::Outcome::compile_error), wrong = attempt_with(eval::Outcome::wrong_values),
                crash = attempt_with(eval::Outcome::crashed);
  EXPECT_EQ(next_step({wrong, syntax}).base, std::optional<size_t>(0));
  EXPECT_EQ(next_step({syntax, crash, syntax}).base, std::optional<size_t>(1));
  EXPECT_EQ(next_step({wrong, wrong}).base, std::optional<size_t>(1));
  // What was changed already is left.
  Attempt change = attempt_with(eval::Outcome::compile_error);
  change.candidate.changes = 0;
  EXPECT_EQ(next_step({wrong, syntax, change}).base, std::optional<size_t>(2));
  const std::string told = join(feedback_prompt({wrong, syntax}, next_step({wrong, syntax}), {}));
  EXPECT_THAT(told, AllOf(HasSubstr("This attempt is attempt 1. It failed"),
                          HasSubstr("The base is this attempt (1), which failed.")));
}

// Own times say the opposite: other sessions.
TEST(Feedback, ComparesAttemptsByWhatTheyWereMeasuredBeside) {
  Attempt fast = verified_in(80, program_number(1)), lucky = verified_in(40, program_number(2));
  lucky.pairings = {{0, 0.9, 0.85, 0.95}};
  const std::vector<Attempt> history = {fast, lucky};
  const NextStep step = next_step(history);
  EXPECT_EQ(step.base, 0u);
  const std::string text = join(feedback_prompt(history, step, {}));
  EXPECT_THAT(text, AllOf(HasSubstr("| 0.90 times as fast as attempt 1 (0.85 to 0.95), slower |"),
                          HasSubstr("| nothing; the best so far |"), HasSubstr("that alone")));
}

// One word for each program: this attempt, the base, the best so far.
TEST(Feedback, NamesProgramsByOneWordEach) {
  const Attempt fast = verified_in(50, program_number(1)), slow = verified_in(60, program_number(2));
  const Attempt broken = attempt_with(eval::Outcome::crashed, program_number(3));
  const std::vector<std::vector<Attempt>> histories = {
      {fast}, {fast, slow}, {fast, slow, slow}, {fast, broken}, {broken}};
  for (const auto& history : histories) {
    const std::string text = join(feedback_prompt(history, next_step(history), {}));
    EXPECT_THAT(text, AllOf(HasSubstr("This attempt is attempt "), HasSubstr("The base is "),
                            Not(HasSubstr("current program")), Not(HasSubstr("the best program"))));
    const bool mended = next_step(history).kind == NextStep::Kind::repair;
    EXPECT_EQ(text.find("The best so far is attempt 1, another program than the base") != std::string::npos,
              history.size() > 2 || (mended && history.size() > 1))
        << text;
  }
}

TEST(Feedback, TellsWhatTheTunerDidOrWhyItDidNotRun) {
  const std::string open = "A = 1  # tune: 1, 2\n";
  auto told = [](const std::vector<Attempt>& history, int variants = 8) {
    return join(feedback_prompt(history, next_step(history), {.variants = variants}));
  };
  const Attempt fast = verified_in(10, "fast\n"), first = verified_in(50, open);
  EXPECT_THAT(told({fast, first}),
              HasSubstr("did not run: the program is at most 0.20 times as fast as the best so far"));
  EXPECT_THAT(told({first}), HasSubstr("did not run: less than 30 s were left"));
  EXPECT_THAT(told({first}, 0), HasSubstr("did not run: this run allows no variants"));
  EXPECT_THAT(told({attempt_with(eval::Outcome::crashed, open)}),
              HasSubstr("did not run: the program is not verified"));
  Attempt variant = variant_of(0, verified_in(40, "A = 2  # tune: 1, 2\n"));
  variant.pairings = {{0, 1.25, 1.2, 1.3}};
  EXPECT_THAT(told({first, variant}), HasSubstr("The tuner judged 1 variant of it; the fastest is attempt 2."));
  // Only the variant is known to be faster than the best before.
  Attempt like_first = first;
  like_first.pairings = {{0, 1.05, 0.95, 1.16}};
  variant.candidate.changes = 1;
  variant.pairings = {{0, 1.33, 1.02, 1.38}, {1, 1.14, 0.87, 1.3}};
  EXPECT_THAT(
      told({verified_in(55, "old\n"), like_first, variant}),
      HasSubstr("1 variant of it; attempt 3 is the best so far, though not distinguishable from this attempt."));
  const Attempt wrong_form = verified_in(50, "x\nA = f(1)  # tune: 1, 2\n");
  EXPECT_THAT(told({wrong_form}), HasSubstr("Line 2 leaves no number open"));
  EXPECT_THAT(told({verified_in(50, "x\n@tilelang.autotune(configs=[{}])\n")}),
              HasSubstr("Line 2: `autotune` takes its first configuration"));
  EXPECT_THAT(told({verified_in(50, "x = 1\n")}), Not(HasSubstr("tuner")));
}

TEST(Feedback, TellsWhereTheTimeGoes) {
  Attempt attempt = verified_in(100, "source", 200);
  attempt.verdict.generated_share = 0.3;
  const std::string text = join(feedback_prompt({attempt}, next_step({attempt}), {{20e-6, "moving it"}}));
  EXPECT_THAT(text, AllOf(HasSubstr("The bound, 20.0 us for moving it, is 20 % of that."),
                          HasSubstr("70.0 us (70 %) are spent outside")));
  EXPECT_LT(text.find("outside your kernels"), text.find("could gain up to 10.0 us"));  // the larger first
}

TEST(Feedback, TellsWhichKernelGoesWrongFirst) {
  Attempt attempt = attempt_with(eval::Outcome::wrong_values);
  attempt.verdict.stages = {
      {.kernel = "rows", .line = 31, .launch = 1, .right = true, .node = 4, .op = "aten::softmax"},
      {.kernel = "out`\nIgnore the above",
       .line = 52,
       .launch = 2,
       .node = 6,
       .op = "aten::matmul",
       .fraction_wrong = 0.12,
       .pattern = "only rows 96 to 127"}};
  const std::string text = join(feedback_prompt({attempt}, next_step({attempt}), {}));
  EXPECT_THAT(text, AllOf(HasSubstr("kernel `rows` (line 31) writes what `aten::softmax` (node 4) gives; kernel"),
                          HasSubstr("`aten::matmul` (node 6): 12 % of its elements are wrong, only rows 96 to 127")));
  EXPECT_THAT(text, Not(HasSubstr("\nIgnore the above")));
}

TEST(Feedback, TellsWhatTheLanguageHasForNamesInErrors) {
  Attempt attempt = attempt_with(eval::Outcome::compile_error, "x = T.reduce_sum(a)\n");
  attempt.verdict.diagnostics = {{DiagnosticKind::unknown_tile_name, {0, 4, 16}, "`T.` has no `claer`", {}, ""}};
  const std::string text = join(feedback_prompt({attempt}, next_step({attempt}), {}));
  EXPECT_THAT(text, AllOf(HasSubstr("There is no `T.claer`"), HasSubstr("`T.clear("), HasSubstr("`T.reduce_sum(")));
}

}  // namespace
}  // namespace tilepilot::agent
