// What attempts teach: changes between programs, by what they mended or how much faster they made them.
#include "agent/store/learning.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace tilepilot::agent {
namespace {

using ::testing::IsEmpty;

Attempt attempt(const std::string& source, eval::Outcome outcome, double candidate_us = 0, double low = 0,
                double high = 0) {
  Attempt made{{source, "what " + source.substr(0, 6)}, {}, {}};
  made.verdict.outcome = outcome;
  made.verdict.target = "cpu";
  if (candidate_us > 0) made.verdict.candidate = eval::Timing{candidate_us, candidate_us, candidate_us, 9};
  made.verdict.speedup_low = low;
  made.verdict.speedup_high = high;
  return made;
}

LearnFacts facts() { return {"run", {{"aten::linear", "aten::relu"}, {{"aten::linear", "aten::relu"}}}}; }

// Each a change of the one before it.
std::vector<Attempt> chain(std::vector<Attempt> attempts) {
  for (size_t i = 1; i < attempts.size(); ++i) attempts[i].candidate.changes = i - 1;
  return attempts;
}

TEST(LineChanges, TellWhatWasTakenOutAndPutIn) {
  EXPECT_EQ(line_changes("a\nb\nc\n", "a\nx\nc\ny\n", 10), "- b\n+ x\n+ y\n");
  EXPECT_EQ(line_changes("a\n", "a\n", 10), "");
  EXPECT_EQ(line_changes("a\nb\n", "a\n\nb\n", 10), "");     // blank lines are no change
  EXPECT_EQ(line_changes("a\nb\nc\n", "x\ny\nz\n", 5), "");  // another program
  EXPECT_EQ(line_changes("", "a\n", 5), "+ a\n");
}

TEST(Learning, AFailureAndWhatMendedItAreAFix) {
  Attempt broken = attempt("one\ntwo(x\nthree\n", eval::Outcome::compile_error);
  broken.verdict.line = 2;
  broken.verdict.diagnostics = {{DiagnosticKind::syntax_error, {}, "`(` is never closed"}};
  const Learnt learnt = learn(chain({broken, attempt("one\ntwo(x)\nthree\n", eval::Outcome::verified)}), facts());
  ASSERT_EQ(learnt.fixes.size(), 1u);
  EXPECT_EQ(learnt.fixes[0].kind, "syntax_error");
  EXPECT_EQ(learnt.fixes[0].message, "`(` is never closed");
  EXPECT_EQ(learnt.fixes[0].line, "two(x");
  EXPECT_EQ(learnt.fixes[0].change, "- two(x\n+ two(x)\n");
  EXPECT_EQ(learnt.fixes[0].from.attempt, 1);
  EXPECT_EQ(learnt.fixes[0].from.target, "cpu");
  EXPECT_THAT(learnt.lessons, IsEmpty());
}

TEST(Learning, KindsAreDiagnosticsThenGuardsThenOutcomes) {
  eval::Verdict verdict;
  verdict.outcome = eval::Outcome::wrong_values;
  EXPECT_EQ(failure_kind(verdict), "wrong_values");
  verdict.outcome = eval::Outcome::rejected;
  verdict.guard = "cached_result";
  EXPECT_EQ(failure_kind(verdict), "cached_result");
}

TEST(Learning, AProgramThatWasRightOnTheGivenInputsAloneIsMended) {
  Attempt narrow = attempt("a\nexp(x)\n", eval::Outcome::verified, 10, 9, 11);
  narrow.verdict.given_inputs_only = true;
  narrow.verdict.notes = {"it fails with heavy tails"};
  const Learnt learnt = learn(chain({narrow, attempt("a\nexp(x - m)\n", eval::Outcome::verified, 5, 18, 22)}), facts());
  ASSERT_EQ(learnt.fixes.size(), 1u);
  EXPECT_EQ(learnt.fixes[0].kind, "given_inputs_only");
  EXPECT_EQ(learnt.fixes[0].message, "it fails with heavy tails");
  EXPECT_THAT(learnt.lessons, IsEmpty());
}

TEST(Learning, AFasterProgramIsALessonBeyondTheIntervals) {
  const Attempt slow = attempt("a\nslow\n", eval::Outcome::verified, 100, 0.9, 1.1);
  const Attempt fast = attempt("a\nfast\n", eval::Outcome::verified, 25, 3.3, 4.4);
  const Attempt equal = attempt("a\nequal\n", eval::Outcome::verified, 24, 4.2, 4.6);
  const Learnt learnt = learn(chain({slow, fast, equal}), facts());
  ASSERT_EQ(learnt.lessons.size(), 1u);
  EXPECT_EQ(learnt.lessons[0].change, "- slow\n+ fast\n");
  EXPECT_EQ(learnt.lessons[0].before_us, 100);
  EXPECT_EQ(learnt.lessons[0].after_us, 25);
  EXPECT_NEAR(learnt.lessons[0].gain_low, 3, 1e-9);
  EXPECT_THAT(learnt.lessons[0].patterns, ::testing::ElementsAre("activation", "product", "product > activation"));
}

TEST(Learning, NothingIsLearntFromWhatSaysNothing) {
  const Attempt failed = attempt("a\n", eval::Outcome::wrong_values);
  const Attempt ours = attempt("a\n", eval::Outcome::worker_failed);
  Attempt trivial = attempt("b\n", eval::Outcome::verified);
  trivial.verdict.degenerate = true;
  const Attempt good = attempt("c\n", eval::Outcome::verified);
  EXPECT_THAT(learn(chain({failed, trivial}), facts()).fixes, IsEmpty());
  EXPECT_THAT(learn(chain({ours, good}), facts()).fixes, IsEmpty());
  EXPECT_THAT(learn(chain({failed, failed}), facts()).fixes, IsEmpty());
  EXPECT_THAT(learn({}, facts()).fixes, IsEmpty());
  // Written anew, it says nothing of what came before.
  EXPECT_THAT(learn({failed, good}, facts()).fixes, IsEmpty());
}

TEST(Learning, FollowsBranches) {
  const Attempt root = attempt("a\nroot\n", eval::Outcome::verified, 100, 0.9, 1.1);
  const Attempt broken = attempt("a\nbroken\n", eval::Outcome::wrong_values);
  const Attempt fast = attempt("a\nfast\n", eval::Outcome::verified, 20, 4, 5);
  std::vector<Attempt> attempts = chain({root, broken, fast});
  attempts[2].candidate.changes = 0;
  const Learnt learnt = learn(attempts, facts());
  EXPECT_THAT(learnt.fixes, IsEmpty());
  ASSERT_EQ(learnt.lessons.size(), 1u);
  EXPECT_EQ(learnt.lessons[0].change, "- root\n+ fast\n");
}

}  // namespace
}  // namespace tilepilot::agent
