#include "agent/store/run_store.h"

#include <gmock/gmock.h>

#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json.hpp>

#include "retrieval/database.h"
#include "tests/agent/stored_run.h"

namespace tilepilot::agent {
namespace {

using RunStoreTest = RunTest;
using ::testing::HasSubstr;

TEST_F(RunStoreTest, KeepsARunThatWasKilled) {
  ASSERT_TRUE(store_->save_attempt(run_, 0, {"class ModelNew: ...", "first"}, std::nullopt).ok());
  ASSERT_TRUE(store_->save_exchange(run_, 0, {.request = "{}"}).ok());
  store_.reset();
  EXPECT_EQ(column("SELECT source FROM attempt"), "class ModelNew: ...");
  EXPECT_EQ(column("SELECT verdict FROM attempt"), "(null)");
  EXPECT_EQ(column("SELECT finished FROM run"), "(null)");
  EXPECT_EQ(column("SELECT status FROM exchange"), "(null)");
}

TEST_F(RunStoreTest, FindsTheRunOfABatchThatDidNotEnd) {
  auto ended = store_->begin_run({"m.py", "text", "llm", "{}", 4});
  auto killed = store_->begin_run({"m.py", "text", "llm", "{}", 4});
  auto other = store_->begin_run({"m.py", "text", "llm", "{}", 5});
  ASSERT_TRUE(ended.ok() && killed.ok() && other.ok());
  ASSERT_TRUE(store_->finish_run(*ended, "nothing left to try", std::nullopt).ok());
  EXPECT_EQ(*store_->find_interrupted(4, "text"), *killed);
  EXPECT_EQ(*store_->find_interrupted(4, "another text"), std::nullopt);
  EXPECT_EQ(*store_->find_interrupted(6, "text"), std::nullopt);
}

TEST_F(RunStoreTest, KeepsWhatWasNearestWhenARunBegan) {
  const retrieval::Neighbour neighbour{"softmax", "seed", "cpu", "print", 0.25, false};
  auto run = store_->begin_run({"m.py", "text", "builtin", "{}", 0, neighbour});
  auto none = store_->begin_run({"m.py", "text", "builtin", "{}"});
  ASSERT_TRUE(run.ok() && none.ok());
  const auto stored = *store_->find(*run);
  ASSERT_TRUE(stored->neighbour.has_value());
  EXPECT_EQ(stored->neighbour->name, "softmax");
  EXPECT_EQ(stored->neighbour->distance, 0.25);
  EXPECT_FALSE((*store_->find(*none))->neighbour.has_value());
  EXPECT_TRUE((*store_->find(*none))->neighbour_known);
  // A run has a name of its own in all databases.
  EXPECT_EQ(column("SELECT count(DISTINCT uid) FROM run WHERE length(uid) = 32"), column("SELECT count(*) FROM run"));
}

TEST_F(RunStoreTest, AddsTheVerdictToItsAttempt) {
  eval::Verdict verdict;
  verdict.outcome = eval::Outcome::wrong_shape;
  for (int number : {0, 1}) {
    ASSERT_TRUE(store_->save_attempt(run_, number, {"source", "summary"}, std::nullopt).ok());
    ASSERT_TRUE(store_->save_attempt(run_, number, {"source", "summary"}, verdict).ok());
    verdict.outcome = eval::Outcome::verified;
  }
  ASSERT_TRUE(store_->finish_run(run_, "attempts spent", 1).ok());
  EXPECT_EQ(nlohmann::json::parse(column("SELECT verdict FROM attempt WHERE number = 0"))["outcome"], "wrong_shape");
  EXPECT_EQ(nlohmann::json::parse(column("SELECT verdict FROM attempt WHERE number = 1"))["outcome"], "verified");
  EXPECT_EQ(column("SELECT ending FROM run"), "attempts spent");
  EXPECT_EQ(column("SELECT best_attempt FROM run"), "1");
}

TEST_F(RunStoreTest, GivesTheExchangesOfOneRunInOrder) {
  const int64_t other = begin_run();
  ASSERT_TRUE(store_
                  ->save_exchange(run_, 1,
                                  {.request = "second",
                                   .status = 200,
                                   .reply = "reply two",
                                   .input_tokens = 3,
                                   .output_tokens = 4,
                                   .cached_tokens = 2,
                                   .estimated = true,
                                   .dollars = 0.5,
                                   .seconds = 6,
                                   .attempt = 1})
                  .ok());
  ASSERT_TRUE(store_->save_exchange(run_, 0, {.request = "first", .status = 429, .failure = "slow down"}).ok());
  ASSERT_TRUE(store_->save_exchange(run_, 2, {.request = "no reply yet"}).ok());
  ASSERT_TRUE(store_->save_exchange(other, 0, {.request = "elsewhere", .status = 200}).ok());
  auto exchanges = store_->exchanges(run_);
  ASSERT_TRUE(exchanges.ok());
  ASSERT_EQ(exchanges->size(), 3u);
  EXPECT_EQ((*exchanges)[0].status, 429);
  EXPECT_EQ((*exchanges)[0].failure, "slow down");
  EXPECT_EQ((*exchanges)[2].status, 0);
  const Exchange& second = (*exchanges)[1];
  EXPECT_EQ(second.request, "second");
  EXPECT_EQ(second.reply, "reply two");
  EXPECT_EQ(second.input_tokens, 3);
  EXPECT_EQ(second.output_tokens, 4);
  EXPECT_EQ(second.cached_tokens, 2);
  EXPECT_TRUE(second.estimated);
  EXPECT_EQ(second.attempt, 1);
  EXPECT_EQ(second.started.size(), 20u);
  EXPECT_EQ(second.dollars, 0.5);
  EXPECT_EQ(second.seconds, 6);
}

// A run that was killed has no best attempt on record: its verdicts tell.
TEST_F(RunStoreTest, ListsAndFindsRuns) {
  const int64_t other = begin_run();
  eval::Verdict verdict;
  verdict.outcome = eval::Outcome::verified;
  for (double eager : {20.0, 30.0, 10.0}) {
    const int number = eager == 20 ? 0 : eager == 30 ? 1 : 2;
    verdict.candidate = eval::Timing{10, 10, 10, 3};
    verdict.eager = eval::Timing{eager, eager, eager, 3};
    ASSERT_TRUE(store_->save_attempt(run_, number, {std::to_string(number), "summary"}, std::nullopt).ok());
    ASSERT_TRUE(store_->save_attempt(run_, number, {std::to_string(number), "summary"}, verdict).ok());
  }
  ASSERT_TRUE(store_->save_attempt(run_, 3, {"3", "under way"}, std::nullopt).ok());
  auto runs = store_->list(10);
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ((*runs)[0].id, other);
  EXPECT_EQ((*runs)[1].attempts, 4);
  EXPECT_EQ((*runs)[1].finished, "");
  auto found = store_->find(run_);
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->attempts.size(), 4u);
  EXPECT_EQ((*found)->best, 1u);
  EXPECT_EQ((*found)->attempts[1].candidate.source, "1");
  EXPECT_EQ((*found)->attempts[3].verdict.detail, "not judged");
  ASSERT_TRUE(store_->finish_run(run_, "attempts spent", 0).ok());
  EXPECT_EQ((*store_->find(run_))->best, 0u);
  EXPECT_FALSE(*store_->find(other + 1));
}

// Whatever a candidate printed.
TEST_F(RunStoreTest, KeepsVerdictsThatAreNoText) {
  eval::Verdict verdict;
  verdict.detail = "raised \xff";
  ASSERT_TRUE(store_->save_attempt(run_, 0, {"source", "summary"}, std::nullopt).ok());
  EXPECT_TRUE(store_->save_attempt(run_, 0, {"source", "summary"}, verdict).ok());
}

TEST_F(RunStoreTest, FailStoreWithAdvice) {
  auto error = [](int code) { return retrieval::database_error("runs.db", SQLite::Exception("it is so", code)); };
  EXPECT_THAT(error(SQLITE_BUSY)->message, HasSubstr("is locked by another program"));
  EXPECT_THAT(error(SQLITE_BUSY)->hint, HasSubstr("--store"));
  EXPECT_THAT(error(SQLITE_CORRUPT | (1 << 8))->message, HasSubstr("is damaged"));
  EXPECT_THAT(error(SQLITE_CORRUPT)->hint, HasSubstr("--store"));
  auto nowhere = RunStore::open("");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message, HasSubstr("`HOME` is not set"));
}

TEST_F(RunStoreTest, FailUnknownRun) {
  auto exchanges = store_->exchanges(run_ + 1);
  ASSERT_FALSE(exchanges.ok());
  EXPECT_THAT(exchanges.error().message, HasSubstr("there is no run"));
}

}  // namespace
}  // namespace tilepilot::agent
