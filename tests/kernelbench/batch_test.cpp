// Batches with a runner that does as it is told.
#include "kernelbench/batch.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "kernelbench/batch_lock.h"
#include "tests/kernelbench/temporary_folder.h"

namespace tilepilot::kernelbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Outcome ends(Ending ending, double dollars = 0, std::string reason = "") {
  Outcome outcome;
  outcome.ending = ending;
  outcome.dollars = dollars;
  outcome.reason = std::move(reason);
  outcome.record = {{"speedup", 2.0}};
  return outcome;
}

// Each problem verified, unless `answers` has something else for it, in turn.
class FakeRunner final : public ProblemRunner {
 public:
  std::optional<Outcome> run(int64_t, const Problem& problem, const Allowance& allowance,
                             const std::function<void(const std::string&)>& stage) override {
    std::unique_lock lock(mutex_);
    begun.push_back(problem.id);
    allowed.push_back(allowance.dollars);
    most_at_once = std::max(most_at_once, ++at_once_);
    if (waits_for != 0) changed_.wait(lock, [&] { return stopped || static_cast<int>(begun.size()) >= waits_for; });
    --at_once_;
    lock.unlock();
    stage("going on");
    lock.lock();
    if (stopped && hangs.count(problem.id) != 0) return std::nullopt;
    if (hangs.count(problem.id) != 0) {
      changed_.wait(lock, [&] { return stopped; });
      return std::nullopt;
    }
    changed_.notify_all();
    auto& mine = answers[problem.id];
    if (mine.empty()) return ends(Ending::verified, dollars);
    Outcome outcome = mine.front();
    if (mine.size() > 1) mine.erase(mine.begin());
    return outcome;
  }
  void stop() override {
    std::lock_guard lock(mutex_);
    stopped = true;
    changed_.notify_all();
  }

  std::map<int, std::vector<Outcome>> answers;
  std::set<int> hangs;
  double dollars = 0;
  int waits_for = 0;  // none ends before so many have begun
  std::vector<int> begun;
  std::vector<double> allowed;
  int most_at_once = 0;
  bool stopped = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int at_once_ = 0;
};

class Batches : public FolderTest {
 protected:
  Batches() {
    auto opened = BatchStore::open(folder_ / "store.db");
    EXPECT_TRUE(opened.ok());
    store_ = *std::move(opened);
  }
  int64_t begin(int problems) {
    std::vector<Problem> list;
    for (int id = 1; id <= problems; ++id) list.push_back({1, id, "p" + std::to_string(id), "", "text"});
    return *store_->begin({"root", "digest", "{}", "{}"}, list);
  }
  BatchResult run(int64_t batch, FakeRunner& runner, const BatchOptions& options = {}) {
    auto result = run_batch(*store_, batch, runner, options, {});
    EXPECT_TRUE(result.ok());
    return *std::move(result);
  }
  // The ending of each problem; "waiting" and "running" are none.
  std::vector<std::string> endings(int64_t batch) {
    std::vector<std::string> texts;
    const auto loaded = store_->load(batch);
    for (const BatchProblem& each : (*loaded)->problems)
      texts.emplace_back(each.state == State::done      ? to_string(each.outcome.ending)
                         : each.state == State::running ? "running"
                                                        : "waiting");
    return texts;
  }

  std::unique_ptr<BatchStore> store_;
};

TEST_F(Batches, TakeProblemsInTheSameRandomOrderInEveryCall) {
  const int64_t batch = begin(40);
  FakeRunner first, second;
  for (int id = 1; id <= 40; ++id) first.hangs.insert(id);
  FakeRunner undisturbed;
  run(begin(40), undisturbed);
  EXPECT_TRUE(std::is_sorted(undisturbed.begun.begin(), undisturbed.begun.end()));
  run(batch, first, {.jobs = 3, .minutes = 5e-3, .shuffle = true});
  ASSERT_FALSE(first.begun.empty());
  run(batch, second, {.shuffle = true});
  ASSERT_EQ(second.begun.size(), 40u);
  EXPECT_FALSE(std::is_sorted(second.begun.begin(), second.begun.end()));
  EXPECT_TRUE(std::is_permutation(first.begun.begin(), first.begun.end(), second.begun.begin(),
                                  second.begun.begin() + static_cast<int64_t>(first.begun.size())));
}

TEST_F(Batches, RunEachProblemOnce) {
  const int64_t batch = begin(5);
  FakeRunner runner;
  runner.answers[2] = {ends(Ending::failed, 0, "wrong")};
  runner.waits_for = 3;
  auto result = run(batch, runner, {.jobs = 3});
  EXPECT_EQ(result.end, BatchEnd::complete);
  EXPECT_EQ(runner.most_at_once, 3);
  EXPECT_EQ(runner.begun.size(), 5u);
  EXPECT_THAT(endings(batch), ElementsAre("verified", "failed", "verified", "verified", "verified"));
  auto loaded = store_->load(batch);
  EXPECT_NE((*loaded)->finished, "");
  EXPECT_EQ((*loaded)->problems[1].outcome.reason, "wrong");
  EXPECT_EQ((*loaded)->problems[0].outcome.record["speedup"], 2.0);
  FakeRunner again;
  run(batch, again);
  EXPECT_THAT(again.begun, ElementsAre());
}

TEST_F(Batches, GoOnWhereTheyWereKilled) {
  const int64_t batch = begin(3);
  const Problem first{1, 1, "p1", "", "text"}, second{1, 2, "p2", "", "text"};
  ASSERT_TRUE(store_->set_running(batch, first));
  ASSERT_TRUE(store_->set_done(batch, first, ends(Ending::failed)));
  ASSERT_TRUE(store_->set_running(batch, second));  // and the process dies
  FakeRunner runner;
  run(batch, runner);
  EXPECT_THAT(runner.begun, ElementsAre(2, 3));
  EXPECT_THAT(endings(batch), ElementsAre("failed", "verified", "verified"));
}

TEST_F(Batches, TryAgainWhatWasNotJudged) {
  const int64_t batch = begin(3);
  FakeRunner runner;
  runner.answers[1] = {ends(Ending::not_judged, 0.5, "the endpoint is gone"), ends(Ending::verified, 0.25)};
  runner.answers[2] = {ends(Ending::not_judged, 0, "crashed")};
  auto result = run(batch, runner);
  EXPECT_THAT(runner.begun, ElementsAre(1, 2, 3, 1, 2));
  EXPECT_THAT(endings(batch), ElementsAre("verified", "not_judged", "verified"));
  EXPECT_DOUBLE_EQ(result.progress.dollars, 0.75);
  EXPECT_DOUBLE_EQ((*store_->load(batch))->problems[0].outcome.dollars, 0.75);
  // Another call tries it once more.
  FakeRunner again;
  run(batch, again);
  EXPECT_THAT(again.begun, ElementsAre(2));
}

TEST_F(Batches, StopWhereNothingIsJudgedAnyMore) {
  const int64_t batch = begin(9);
  FakeRunner runner;
  for (int id = 3; id <= 9; ++id) runner.answers[id] = {ends(Ending::not_judged, 0, "no GPU")};
  auto result = run(batch, runner, {.most_failures_in_a_row = 4});
  EXPECT_EQ(result.end, BatchEnd::halted);
  EXPECT_EQ(result.why, "no GPU");
  EXPECT_THAT(runner.begun, ElementsAre(1, 2, 3, 4, 5, 6));
  FakeRunner again;
  EXPECT_EQ(run(batch, again).end, BatchEnd::complete);
  EXPECT_EQ(again.begun.size(), 7u);
}

TEST_F(Batches, EndInTime) {
  const int64_t batch = begin(3);
  FakeRunner runner;
  runner.hangs = {2};
  auto result = run(batch, runner, {.minutes = 0.005});
  EXPECT_EQ(result.end, BatchEnd::time_spent);
  EXPECT_TRUE(runner.stopped);
  EXPECT_THAT(endings(batch), ElementsAre("verified", "waiting", "waiting"));
  EXPECT_EQ((*store_->load(batch))->finished, "");
}

TEST_F(Batches, SpendNoMoreThanTheyHave) {
  const int64_t batch = begin(6);
  FakeRunner runner;
  runner.dollars = 1;
  auto result = run(batch, runner, {.each = {10, 1}, .dollars = 2.5});
  EXPECT_EQ(result.end, BatchEnd::money_spent);
  EXPECT_THAT(runner.allowed, ElementsAre(1, 1, 0.5));
  // What was spent counts when the batch goes on.
  FakeRunner again;
  again.dollars = 1;
  run(batch, again, {.each = {10, 1}, .dollars = 4});
  EXPECT_THAT(again.allowed, ElementsAre(1));
}

// What is left of the batch's money may be too little for a request: the problem waits for more.
TEST_F(Batches, LeaveProblemsForWhichMoneyIsLacking) {
  const int64_t batch = begin(4);
  FakeRunner runner;
  runner.dollars = 1;
  Outcome lacking = ends(Ending::abstained);
  lacking.lacks_money = true;
  runner.answers[3] = {lacking};
  auto result = run(batch, runner, {.each = {10, 1}, .dollars = 2.5});
  EXPECT_EQ(result.end, BatchEnd::money_spent);
  EXPECT_THAT(endings(batch), ElementsAre("verified", "verified", "waiting", "waiting"));
  FakeRunner again;
  again.dollars = 1;
  EXPECT_EQ(run(batch, again, {.each = {10, 1}, .dollars = 10}).end, BatchEnd::complete);
  EXPECT_THAT(endings(batch), ::testing::Each("verified"));
  // Of its own money it could have had no more.
  const int64_t other = begin(1);
  runner.answers[1] = {lacking};
  EXPECT_EQ(run(other, runner, {.each = {10, 1}}).end, BatchEnd::complete);
  EXPECT_THAT(endings(other), ElementsAre("abstained"));
}

TEST_F(Batches, PromiseNoMoneyTwice) {
  const int64_t batch = begin(6);
  FakeRunner runner;
  runner.dollars = 0.1;
  runner.waits_for = 2;
  run(batch, runner, {.jobs = 4, .each = {10, 1}, .dollars = 1.5});
  EXPECT_EQ(runner.most_at_once, 2);  // the second has what the first left, a third would have nothing
  EXPECT_THAT(endings(batch), ::testing::Each("verified"));
}

TEST_F(Batches, AreFoundByProblemsAndOptions) {
  const int64_t batch = begin(1);
  EXPECT_EQ(*store_->find("root", "{}"), batch);
  EXPECT_EQ(*store_->find("root", R"({"dtype":"fp16"})"), std::nullopt);
  EXPECT_EQ(*store_->find("elsewhere", "{}"), std::nullopt);
  EXPECT_EQ(*store_->load(batch + 1), std::nullopt);
  EXPECT_EQ(store_->list()->front().total, 1);
}

TEST_F(Batches, AreSharedOut) {
  const int64_t batch = begin(5);
  FakeRunner second;
  const BatchResult result = run(batch, second, {.share = {2, 2}});
  EXPECT_THAT(second.begun, ElementsAre(2, 4));
  EXPECT_EQ(result.end, BatchEnd::complete);
  EXPECT_EQ(result.progress.total, 2);
  EXPECT_EQ(result.progress.done, 2);
  EXPECT_EQ((*store_->load(batch))->finished, "");  // the others are left
  FakeRunner all;
  EXPECT_EQ(run(batch, all).progress.total, 5);
  EXPECT_THAT(all.begun, ElementsAre(1, 3, 5));
}

TEST_F(Batches, EndWhereAnotherMachineHasThem) {
  const int64_t batch = begin(3);
  FakeRunner runner;
  int asked = 0;
  BatchOptions options;
  options.still_ours = [&] { return ++asked < 2; };
  const BatchResult result = run(batch, runner, options);
  EXPECT_EQ(result.end, BatchEnd::halted);
  EXPECT_EQ(result.why, "another machine goes on with this batch");
  EXPECT_THAT(runner.begun, ElementsAre(1));
}

TEST_F(Batches, AreRunByOneProcessAtATime) {
  auto first = lock_batch(folder_ / "store.db", 1);
  ASSERT_TRUE(first.ok());
  auto second = lock_batch(folder_ / "." / "store.db", 1);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("is being run by another process"));
  EXPECT_TRUE(lock_batch(folder_ / "store.db", 2).ok());
  { auto given_back = *std::move(first); }
  EXPECT_TRUE(lock_batch(folder_ / "store.db", 1).ok());
}

}  // namespace
}  // namespace tilepilot::kernelbench
