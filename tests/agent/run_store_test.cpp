#include "agent/run_store.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/agent/stored_run.h"

namespace tilepilot::agent {
namespace {

using RunStoreTest = StoredRun;
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
  ASSERT_TRUE(store_->save_exchange(run_, 1, {"second", 200, "reply two", 3, 4, 0.5, 6}).ok());
  ASSERT_TRUE(store_->save_exchange(run_, 0, {"first", 429, "slow down", 0, 0, 0, 1}).ok());
  ASSERT_TRUE(store_->save_exchange(run_, 2, {.request = "no reply yet"}).ok());
  ASSERT_TRUE(store_->save_exchange(other, 0, {"elsewhere", 200, "", 0, 0, 0, 0}).ok());
  auto exchanges = store_->exchanges(run_);
  ASSERT_TRUE(exchanges.ok());
  ASSERT_EQ(exchanges->size(), 2u);
  EXPECT_EQ((*exchanges)[0].status, 429);
  const Exchange& second = (*exchanges)[1];
  EXPECT_EQ(second.request, "second");
  EXPECT_EQ(second.reply, "reply two");
  EXPECT_EQ(second.input_tokens, 3);
  EXPECT_EQ(second.output_tokens, 4);
  EXPECT_EQ(second.dollars, 0.5);
  EXPECT_EQ(second.seconds, 6);
}

TEST_F(RunStoreTest, FailUnknownRun) {
  auto exchanges = store_->exchanges(run_ + 1);
  ASSERT_FALSE(exchanges.ok());
  EXPECT_THAT(exchanges.error().message, HasSubstr("there is no run"));
}

}  // namespace
}  // namespace tilepilot::agent
