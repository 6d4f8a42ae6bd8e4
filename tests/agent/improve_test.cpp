// The improve loop with an author, a judge and a clock that do as they are told.
#include "agent/improve.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "tests/agent/stored_run.h"

namespace tilepilot::agent {
namespace {

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
    spent += dollars_a_candidate;
    return std::optional<Candidate>({std::to_string(history.size()), "candidate"});
  }
  double dollars_spent() const override { return spent; }

  int fails_at = -1;
  double dollars_a_candidate = 0, spent = 0;
  std::vector<size_t> seen;
  std::vector<double> allowed;

 private:
  int candidates_;
};

eval::Verdict verified(double candidate_us, double eager_us) {
  eval::Verdict verdict;
  verdict.outcome = eval::Outcome::verified;
  verdict.candidate = eval::Timing{candidate_us, candidate_us, candidate_us, 3};
  verdict.eager = eval::Timing{eager_us, eager_us, eager_us, 3};
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
  std::string target() const override { return "cpu"; }
  double seconds_a_check = 1;
  std::vector<std::string> judged;

 private:
  ManualClock& clock_;
  std::deque<eval::Verdict> verdicts_;
};

class Improve : public StoredRun {
 protected:
  RunOutcome run(Author& author, eval::Judge& judge, const Budget& budget = {}) {
    LoopEvents events;
    events.on_candidate = [this](int number, const Candidate&) {
      log_.push_back("candidate " + std::to_string(number));
    };
    events.on_attempt = [this](int number, const Attempt&) { log_.push_back("attempt " + std::to_string(number)); };
    events.on_confirmed = [this](int number, const Attempt&) { log_.push_back("confirmed " + std::to_string(number)); };
    auto outcome = improve(author, judge, {*store_, run_}, budget, events, clock_);
    EXPECT_TRUE(outcome.ok());
    return std::move(*outcome);
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

TEST_F(Improve, StopsWhenMoneyIsSpent) {
  CountingAuthor author(9);
  author.dollars_a_candidate = 0.4;
  ListJudge judge(clock_, std::deque<eval::Verdict>(3, failed(eval::Outcome::crashed)));
  RunOutcome outcome = run(author, judge, {.dollars = 1});
  EXPECT_EQ(outcome.ending, Ending::money_spent);
  EXPECT_EQ(outcome.attempts.size(), 3u);
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
  ListJudge judge(clock_, {verified(60, 180), verified(50, 100), verified(55, 154)});
  RunOutcome outcome = run(author, judge);
  EXPECT_EQ(outcome.best, 0u);
  EXPECT_THAT(judge.judged, ElementsAre("0", "1", "0"));
  EXPECT_THAT(log_.back(), "confirmed 0");
  // The second look is what is told, also to the store.
  EXPECT_DOUBLE_EQ(outcome.attempts[0].verdict.speedup(), 2.8);
  EXPECT_EQ(nlohmann::json::parse(column("SELECT verdict FROM attempt WHERE number = 0"))["candidate"]["median_us"],
            55);
}

TEST_F(Improve, PassesOverAWinnerThatFailsTheSecondTime) {
  CountingAuthor author(3);
  ListJudge judge(clock_, {verified(10, 100), verified(50, 100), verified(40, 100), failed(eval::Outcome::wrong_values),
                           verified(41, 100)});
  RunOutcome outcome = run(author, judge);
  EXPECT_THAT(judge.judged, ElementsAre("0", "1", "2", "0", "2"));
  EXPECT_EQ(outcome.best, 2u);
}

}  // namespace
}  // namespace tilepilot::agent
