// The improve loop with an author, a judge and a clock that do as they are told.
#include "agent/generate/improve.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "tests/agent/stored_run.h"

namespace tilepilot::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

class ManualClock final : public Clock {
 public:
  double seconds() const override { return now; }
  double now = 1000;
};

// Hands out "0", "1", ... until it is told to stop, to fail, or has none left.
class CountingAuthor final : public Author {
 public:
  explicit CountingAuthor(int candidates) : candidates_(candidates) {}
  void allow(double seconds) override { allowed.push_back(seconds); }
  Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) override {
    seen.push_back(history.size());
    if (fails_at == static_cast<int>(history.size()))
      return make_error(DiagnosticKind::author_failed, {}, "no network today");
    if (static_cast<int>(history.size()) == candidates_) return std::optional<Candidate>();
    if (rest_ != Rest::nothing_left) return std::optional<Candidate>();
    return std::optional<Candidate>({std::to_string(history.size()), "candidate"});
  }
  Spending spending() const override { return {.dollars = 0.9, .tokens = 100}; }
  Rest rest() const override { return rest_; }
  bool needs_ranking() const override { return ranks; }

  bool ranks = false;
  int fails_at = -1;
  Rest rest_ = Rest::nothing_left;
  std::vector<size_t> seen;
  std::vector<double> allowed;

 private:
  int candidates_;
};

eval::Verdict verified(double candidate_us, double eager_us, double low = 0, double high = 0) {
  eval::Verdict verdict;
  verdict.outcome = eval::Outcome::verified;
  verdict.candidate = eval::Timing{candidate_us, candidate_us, candidate_us, 3};
  verdict.eager = eval::Timing{eager_us, eager_us, eager_us, 3};
  verdict.speedup_low = low;
  verdict.speedup_high = high;
  return verdict;
}

eval::Verdict failed(eval::Outcome outcome) {
  eval::Verdict verdict;
  verdict.outcome = outcome;
  return verdict;
}

// Gives the verdicts of a list; each check takes its time.
class ListJudge final : public eval::Judge {
 public:
  ListJudge(ManualClock& clock, std::deque<eval::Verdict> verdicts) : clock_(clock), verdicts_(std::move(verdicts)) {}
  eval::Verdict check(const eval::CheckRequest& request) override {
    judged.push_back(request.source);
    clock_.now += seconds_a_check;
    EXPECT_FALSE(verdicts_.empty()) << "an unexpected check of " << request.source;
    if (verdicts_.empty()) return {};
    eval::Verdict verdict = verdicts_.front();
    verdicts_.pop_front();
    return verdict;
  }
  std::vector<eval::Verdict> compare(const std::vector<eval::CheckRequest>& finalists) override {
    compared.emplace_back();
    for (const eval::CheckRequest& finalist : finalists) compared.back().push_back(finalist.source);
    EXPECT_FALSE(comparisons.empty()) << "an unexpected comparison";
    if (comparisons.empty()) return std::vector<eval::Verdict>(finalists.size());
    auto verdicts = comparisons.front();
    comparisons.pop_front();
    return verdicts;
  }
  std::string target() const override { return "cpu"; }
  Status ready() override {
    ++asked;
    clock_.now += seconds_until_ready;
    return is_missing ? Status(make_error(DiagnosticKind::out_of_memory, {}, "it needs 9 GB")) : Status();
  }
  int asked = 0;  // whether it is ready
  double seconds_until_ready = 0;
  bool is_missing = false;
  std::deque<std::vector<eval::Verdict>> comparisons;
  std::vector<std::vector<std::string>> compared;
  double seconds_a_check = 1;
  std::vector<std::string> judged;

 private:
  ManualClock& clock_;
  std::deque<eval::Verdict> verdicts_;
};

class Improve : public RunTest {
 protected:
  RunOutcome run(Author& author, eval::Judge& judge, const Budget& budget = {}) {
    LoopEvents events;
    events.on_candidate = [this](int number, const Candidate&) {
      log_.push_back("candidate " + std::to_string(number));
    };
    events.on_attempt = [this](int number, const Attempt&) { log_.push_back("attempt " + std::to_string(number)); };
    events.on_finalists = [this](const std::vector<size_t>& numbers) {
      log_.push_back("finalists");
      for (size_t number : numbers) log_.back() += " " + std::to_string(number);
    };
    events.on_paired = [this](int number, const Attempt&) { log_.push_back("paired " + std::to_string(number)); };
    events.on_compared = [this](int number, const Attempt&) { log_.push_back("compared " + std::to_string(number)); };
    auto outcome = improve(author, judge, {*store_, run_}, budget, events, clock_);
    EXPECT_TRUE(outcome.ok());
    return std::move(*outcome);
  }
  // The run was killed after it had judged these; the last one has no verdict.
  std::vector<Attempt> interrupted(const std::vector<std::string>& sources, const eval::Verdict& verdict) {
    for (size_t i = 0; i < sources.size(); ++i) {
      const int number = static_cast<int>(i);
      EXPECT_TRUE(store_->save_attempt(run_, number, {sources[i], "candidate"}, std::nullopt).ok());
      if (i + 1 == sources.size()) break;
      EXPECT_TRUE(store_->save_attempt(run_, number, {sources[i], "candidate"}, verdict).ok());
    }
    return (*store_->find(run_))->attempts;
  }
  std::string stored_ending() { return column("SELECT ending FROM run"); }

  ManualClock clock_;
  std::vector<std::string> log_;
};

TEST_F(Improve, GoesRoundUntilNothingIsLeft) {
  CountingAuthor author(2);
  ListJudge judge(clock_, {failed(eval::Outcome::wrong_values), verified(50, 100)});
  RunOutcome outcome = run(author, judge);
  EXPECT_EQ(outcome.ending, Ending::nothing_left);
  EXPECT_THAT(author.seen, ElementsAre(0, 1, 2));
  EXPECT_THAT(judge.judged, ElementsAre("0", "1"));
  EXPECT_THAT(log_, ElementsAre("candidate 0", "attempt 0", "candidate 1", "attempt 1"));
  EXPECT_EQ(outcome.best, 1u);
  EXPECT_EQ(outcome.seconds, 2);
  EXPECT_EQ(stored_ending(), "nothing left to try");
  EXPECT_EQ(column("SELECT best_attempt FROM run"), "1");
}

TEST_F(Improve, AnAuthorWithoutCandidatesNeedsNoJudge) {
  CountingAuthor author(0);
  ListJudge judge(clock_, {});
  judge.is_missing = true;
  EXPECT_EQ(run(author, judge).ending, Ending::nothing_left);
  EXPECT_EQ(judge.asked, 0);
}

TEST_F(Improve, WhatTheJudgeWaitsForIsNoTimeOfTheRun) {
  CountingAuthor author(2);
  ListJudge judge(clock_, {failed(eval::Outcome::wrong_values), failed(eval::Outcome::wrong_values)});
  judge.seconds_until_ready = 3600;
  RunOutcome outcome = run(author, judge, {.minutes = 1});
  EXPECT_EQ(outcome.ending, Ending::nothing_left);
  EXPECT_EQ(outcome.seconds, 2);
  EXPECT_EQ(judge.asked, 1);
}

TEST_F(Improve, fail_TheJudgeIsNotReady) {
  CountingAuthor author(2);
  ListJudge judge(clock_, {});
  judge.is_missing = true;
  auto outcome = improve(author, judge, {*store_, run_}, {}, {}, clock_);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, DiagnosticKind::out_of_memory);
  EXPECT_EQ(stored_ending(), "the worker failed");
}

TEST_F(Improve, GoesOnWithARunThatWasInterrupted) {
  auto earlier = interrupted({"0", "1", "2"}, verified(80, 100));
  CountingAuthor author(4);
  ListJudge judge(clock_, {failed(eval::Outcome::wrong_values), failed(eval::Outcome::wrong_values)});
  judge.comparisons = {{verified(80, 100), verified(70, 100)}};
  auto outcome = improve(author, judge, {*store_, run_, earlier}, {}, {}, clock_);
  ASSERT_TRUE(outcome.ok());
  EXPECT_THAT(judge.judged, ElementsAre("2", "3"));
  EXPECT_EQ(outcome->attempts.size(), 4u);
  EXPECT_EQ(outcome->best, 1u);
  EXPECT_EQ(column("SELECT count(*) FROM attempt"), "4");
}

TEST_F(Improve, ForgetsWhatTheAuthorNowSaysOtherwise) {
  auto earlier = interrupted({"0", "an older program", "2", "3"}, verified(80, 100));
  CountingAuthor author(2);
  ListJudge judge(clock_, {failed(eval::Outcome::wrong_values)});
  auto outcome = improve(author, judge, {*store_, run_, earlier}, {}, {}, clock_);
  ASSERT_TRUE(outcome.ok());
  EXPECT_THAT(judge.judged, ElementsAre("1"));
  EXPECT_EQ(column("SELECT group_concat(source) FROM attempt"), "0,1");
}

TEST_F(Improve, StopsWhenAttemptsAreSpent) {
  CountingAuthor author(9);
  ListJudge judge(clock_, {failed(eval::Outcome::crashed), failed(eval::Outcome::crashed)});
  RunOutcome outcome = run(author, judge, {.attempts = 2});
  EXPECT_EQ(outcome.ending, Ending::attempts_spent);
  EXPECT_FALSE(outcome.best);
  EXPECT_EQ(column("SELECT count(*) FROM run WHERE best_attempt IS NULL"), "1");
}

TEST_F(Improve, StopsWhenTimeIsSpentAndTellsTheAuthorWhatIsLeft) {
  CountingAuthor author(9);
  ListJudge judge(clock_, {failed(eval::Outcome::crashed), failed(eval::Outcome::crashed)});
  judge.seconds_a_check = 40;
  RunOutcome outcome = run(author, judge, {.minutes = 1});
  EXPECT_EQ(outcome.ending, Ending::time_spent);
  EXPECT_EQ(outcome.attempts.size(), 2u);
  EXPECT_THAT(author.allowed, ElementsAre(60, 20));
}

TEST_F(Improve, NamesWhyAnAuthorRests) {
  for (const auto& [rest, ending] :
       {std::pair(Rest::dollars, Ending::money_spent), std::pair(Rest::tokens, Ending::tokens_spent),
        std::pair(Rest::no_progress, Ending::no_progress), std::pair(Rest::at_roofline, Ending::at_roofline),
        std::pair(Rest::not_worth_it, Ending::not_worth_it)}) {
    CountingAuthor author(9);
    author.rest_ = rest;
    ListJudge judge(clock_, {});
    RunOutcome outcome = run(author, judge);
    EXPECT_EQ(outcome.ending, ending);
    EXPECT_EQ(outcome.spending.dollars, 0.9);
  }
}

// An author that waits for others may give up because the time is over.
class LateAuthor final : public Author {
 public:
  explicit LateAuthor(ManualClock& clock) : clock_(clock) {}
  Result<std::optional<Candidate>> next(const std::vector<Attempt>&) override {
    clock_.now += 1000;
    return make_error(DiagnosticKind::author_failed, {}, "no answer in time");
  }

 private:
  ManualClock& clock_;
};

TEST_F(Improve, TakesNoFailureForOneThatTheTimeExplains) {
  LateAuthor author(clock_);
  ListJudge judge(clock_, {});
  RunOutcome outcome = run(author, judge, {.minutes = 1});
  EXPECT_EQ(outcome.ending, Ending::time_spent);
  EXPECT_FALSE(outcome.failure);
}

TEST_F(Improve, KeepsWhatItHasWhenTheAuthorFails) {
  CountingAuthor author(9);
  author.fails_at = 1;
  ListJudge judge(clock_, {verified(50, 100)});
  RunOutcome outcome = run(author, judge);
  EXPECT_EQ(outcome.ending, Ending::author_failed);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->message, "no network today");
  EXPECT_EQ(outcome.best, 0u);
}

TEST_F(Improve, StopsWhenTheWorkerFails) {
  CountingAuthor author(9);
  ListJudge judge(clock_, {verified(50, 100), verified(40, 100), failed(eval::Outcome::worker_failed)});
  RunOutcome outcome = run(author, judge);
  EXPECT_EQ(outcome.ending, Ending::worker_failed);
  EXPECT_EQ(outcome.best, 1u);
}

// The machine was slower while the first was timed: its eager times say so.
TEST_F(Improve, ChoosesBySpeedupNotByTime) {
  CountingAuthor author(2);
  ListJudge judge(clock_, {verified(60, 180), verified(50, 100)});
  judge.comparisons = {{verified(55, 154), verified(56, 154)}};
  RunOutcome outcome = run(author, judge);
  EXPECT_EQ(outcome.best, 0u);
  EXPECT_THAT(judge.judged, ElementsAre("0", "1"));
  EXPECT_THAT(judge.compared, ElementsAre(ElementsAre("0", "1")));
  EXPECT_THAT(log_, ElementsAre("candidate 0", "attempt 0", "candidate 1", "attempt 1", "finalists 0 1", "compared 0",
                                "compared 1"));
}

// What is told is what the comparison measured, be it below the lucky number of an attempt that was measured once.
TEST_F(Improve, TellsWhatTheComparisonMeasured) {
  CountingAuthor author(3);
  ListJudge judge(clock_, {verified(50, 100), verified(20, 100), verified(49, 100)});
  judge.comparisons = {{verified(55, 100, 1.79, 1.85), verified(60, 100, 1.63, 1.70)}};
  RunOutcome outcome = run(author, judge);
  EXPECT_THAT(judge.compared, ElementsAre(ElementsAre("1", "2")));
  EXPECT_EQ(outcome.best, 1u);
  EXPECT_THAT(outcome.finalists, ElementsAre(1, 2));
  EXPECT_THAT(outcome.indistinguishable, ElementsAre());
  EXPECT_DOUBLE_EQ(outcome.attempts[1].told().speedup(), 100.0 / 55);
  // Each attempt's own number stays in the record.
  EXPECT_DOUBLE_EQ(outcome.attempts[1].verdict.speedup(), 5);
  auto stored = [&](const char* what) {
    return nlohmann::json::parse(column(std::string("SELECT ") + what + " FROM attempt WHERE number = 1"));
  };
  EXPECT_EQ(stored("verdict")["candidate"]["median_us"], 20);
  EXPECT_EQ(stored("compared")["candidate"]["median_us"], 55);
  EXPECT_EQ(column("SELECT compared FROM attempt WHERE number = 0"), "(null)");
  EXPECT_EQ(column("SELECT best_attempt FROM run"), "1");
}

TEST_F(Improve, TakesTheFirstOfFinalistsThatCannotBeToldApart) {
  CountingAuthor author(3);
  ListJudge judge(clock_, {verified(50, 100, 1.9, 2.1), verified(48, 100, 2.0, 2.2), verified(47, 100, 2.0, 2.3)});
  judge.comparisons = {
      {verified(46, 100, 2.1, 2.3), verified(48, 100, 2.0, 2.15), verified(60, 100, 1.6, 1.7)}};  // of 2, 1, 0
  RunOutcome outcome = run(author, judge);
  EXPECT_THAT(judge.compared, ElementsAre(ElementsAre("2", "1", "0")));
  EXPECT_EQ(outcome.best, 2u);
  EXPECT_THAT(outcome.indistinguishable, ElementsAre(1));
}

TEST_F(Improve, TakesTheEarliestOfFinalistsWithOneRatio) {
  CountingAuthor author(3);
  ListJudge judge(clock_, {verified(50, 100, 1.9, 2.1), verified(48, 100, 2.0, 2.2), verified(47, 100, 2.0, 2.3)});
  judge.comparisons = {
      {verified(46.5, 100, 2.1, 2.3), verified(47, 100, 2.0, 2.2), verified(60, 100, 1.6, 1.7)}};  // of 2, 1, 0
  EXPECT_EQ(run(author, judge).best, 1u);
}

TEST_F(Improve, PassesOverFinalistsThatFailInTheComparison) {
  CountingAuthor author(4);
  ListJudge judge(clock_, {verified(10, 100), verified(50, 100), verified(40, 100), verified(70, 100)});
  judge.comparisons = {{failed(eval::Outcome::wrong_values), failed(eval::Outcome::rejected)},
                       {verified(52, 100), verified(69, 100)}};
  RunOutcome outcome = run(author, judge);
  EXPECT_THAT(judge.compared, ElementsAre(ElementsAre("0", "2"), ElementsAre("1", "3")));
  EXPECT_EQ(outcome.best, 1u);
}

TEST_F(Improve, KeepsOwnNumbersWhenTheWorkerFailsInTheComparison) {
  CountingAuthor author(2);
  ListJudge judge(clock_, {verified(50, 100), verified(40, 100)});
  judge.comparisons = {{verified(40, 100), failed(eval::Outcome::worker_failed)}};
  RunOutcome outcome = run(author, judge);
  EXPECT_EQ(outcome.best, 1u);
  EXPECT_TRUE(outcome.finalists.empty());
  EXPECT_FALSE(outcome.attempts[1].compared);
}

TEST_F(Improve, PrefersWhatIsRightOnAllInputs) {
  CountingAuthor author(2);
  eval::Verdict lucky = verified(10, 100);
  lucky.given_inputs_only = true;
  ListJudge judge(clock_, {lucky, verified(50, 100)});
  EXPECT_EQ(run(author, judge).best, 1u);
  EXPECT_TRUE(judge.compared.empty());
}

eval::Verdict beside(eval::Verdict verdict, double ratio) {
  verdict.paired = {{1, ratio, 0.95 * ratio, 1.05 * ratio}};
  return verdict;
}

// The third looks four times as fast as the second: in a session of its own, on a machine that was busier before.
TEST_F(Improve, MeasuresEachAttemptBesideTheBestSoFar) {
  CountingAuthor author(4);
  author.ranks = true;
  ListJudge judge(clock_, {verified(50, 100), verified(40, 100), verified(10, 100), verified(90, 100)});
  judge.comparisons = {{beside(verified(40, 100), 1.25), verified(50, 100)},
                       {beside(verified(41, 100), 0.9), verified(40, 100)},
                       {verified(40, 100), verified(50, 100)}};
  const RunOutcome outcome = run(author, judge);
  // What is far slower by its own measurement is not measured again.
  EXPECT_THAT(judge.compared, ElementsAre(ElementsAre("1", "0"), ElementsAre("2", "1"), ElementsAre("1", "2")));
  EXPECT_EQ(outcome.best, 1u);
  ASSERT_EQ(outcome.attempts[2].pairings.size(), 1u);
  EXPECT_EQ(outcome.attempts[2].pairings[0].other, 1u);
  EXPECT_DOUBLE_EQ(outcome.attempts[2].pairings[0].ratio, 0.9);
  EXPECT_TRUE(outcome.attempts[3].pairings.empty());
  EXPECT_THAT(log_, Contains("paired 2"));
  const auto stored = (*store_->find(run_))->attempts;
  ASSERT_EQ(stored[2].pairings.size(), 1u);
  EXPECT_DOUBLE_EQ(stored[2].pairings[0].low, 0.95 * 0.9);
}

// Where others were at work, an interval holds 1 although the program is twice as fast: the calmer session counts.
TEST_F(Improve, MeasuresAgainWhatOthersAtWorkHide) {
  CountingAuthor author(2);
  author.ranks = true;
  ListJudge judge(clock_, {verified(50, 100), verified(30, 100)});
  eval::Verdict disturbed = verified(30, 100), calm = disturbed;
  disturbed.paired = {{1, 2.77, 0.94, 2.8}};
  calm.paired = {{1, 1.7, 1.6, 1.75}};
  judge.comparisons = {
      {disturbed, verified(50, 100)}, {calm, verified(50, 100)}, {verified(30, 100), verified(50, 100)}};
  const RunOutcome outcome = run(author, judge);
  EXPECT_THAT(judge.compared, ElementsAre(ElementsAre("1", "0"), ElementsAre("1", "0"), ElementsAre("1", "0")));
  EXPECT_DOUBLE_EQ(outcome.attempts[1].pairings.at(0).ratio, 1.7);
  EXPECT_EQ(best_of(outcome.attempts), 1u);
}

// A second session is no second chance: what is as fast stays so, and a wider interval says nothing.
TEST_F(Improve, MeasuresOnceWhatIsClear) {
  CountingAuthor author(2);
  author.ranks = true;
  ListJudge judge(clock_, {verified(50, 100), verified(49, 100)});
  eval::Verdict even = verified(49, 100);
  even.paired = {{1, 1.03, 0.9, 1.2}};
  judge.comparisons = {{even, verified(50, 100)}, {verified(49, 100), verified(50, 100)}};
  EXPECT_DOUBLE_EQ(run(author, judge).attempts[1].pairings.at(0).ratio, 1.03);
  EXPECT_DOUBLE_EQ(narrower({{0, 1.5, 0.9, 1.9}}, {{0, 3, 0.5, 4}}).at(0).ratio, 1.5);
}

TEST_F(Improve, TakesPairingsOfAnInterruptedRunFromTheStore) {
  auto earlier = interrupted({"0", "1", "2"}, verified(80, 100));
  earlier[1].pairings = {{0, 1.5, 1.4, 1.6}};
  CountingAuthor author(2);
  author.ranks = true;
  ListJudge judge(clock_, {});
  judge.comparisons = {{verified(70, 100), verified(80, 100)}};  // of the finalists
  auto outcome = improve(author, judge, {*store_, run_, earlier}, {}, {}, clock_);
  ASSERT_TRUE(outcome.ok());
  EXPECT_THAT(judge.compared, ElementsAre(ElementsAre("1", "0")));
  EXPECT_DOUBLE_EQ(outcome->attempts[1].pairings.at(0).ratio, 1.5);
}

// What the judge of a host without side-by-side timing does.
TEST_F(Improve, ComparesOneByOneWhereTheJudgeKnowsNothingElse) {
  ListJudge judge(clock_, {verified(50, 100), verified(40, 100)});
  auto verdicts = judge.eval::Judge::compare({{.source = "a"}, {.source = "b"}});
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_THAT(judge.judged, ElementsAre("a", "b"));
  EXPECT_DOUBLE_EQ(verdicts[1].speedup(), 2.5);
}

// Hands out the same program with an open number, and then is asked no more.
class OpenNumberAuthor final : public Author {
 public:
  Result<std::optional<Candidate>> next(const std::vector<Attempt>&) override {
    ++asked;
    return std::optional<Candidate>({"A = 1  # tune: 1, 2, 3\n", "open"});
  }
  int asked = 0;
};

TEST_F(Improve, TriesVariantsBesideTheAttempts) {
  OpenNumberAuthor author;
  ListJudge judge(clock_, {verified(50, 100), verified(60, 100), verified(20, 100)});
  judge.comparisons = {{verified(20, 100), verified(50, 100)}};
  const RunOutcome outcome = run(author, judge, {.attempts = 1});
  EXPECT_EQ(author.asked, 1);
  EXPECT_EQ(outcome.ending, Ending::attempts_spent);
  ASSERT_EQ(outcome.attempts.size(), 3u);
  EXPECT_EQ(outcome.best, std::optional<size_t>(2));
  EXPECT_EQ(judge.judged[2], "A = 3  # tune: 1, 2, 3\n");
}

TEST_F(Improve, TriesNoVariantsWhereNoneAreWantedOrTheTimeIsShort) {
  for (const Budget& budget : {Budget{.attempts = 1, .variants = 0}, Budget{.attempts = 1, .minutes = 0.5}}) {
    OpenNumberAuthor author;
    ListJudge judge(clock_, {verified(50, 100)});
    EXPECT_EQ(run(author, judge, budget).attempts.size(), 1u);
    ASSERT_TRUE(store_->drop_attempts(run_, 0).ok());
  }
}

}  // namespace
}  // namespace tilepilot::agent
