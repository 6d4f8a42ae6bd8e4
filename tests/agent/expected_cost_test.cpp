// What a run with a language model is expected to cost, from what earlier ones took.
#include "agent/llm/expected_cost.h"

#include <gmock/gmock.h>

#include "tests/agent/stored_run.h"

namespace tilepilot::agent {
namespace {

using ::testing::HasSubstr;

class ExpectedCosts : public RunTest {
 protected:
  // A run of the model with two attempts of two requests each, and a request that failed.
  void record(const std::string& options) {
    auto run = store_->begin_run({"model.py", "class Model: ...", "llm", options});
    ASSERT_TRUE(run.ok());
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(store_->save_exchange(*run, i, {.status = 200, .output_tokens = 1000, .attempt = i / 2}).ok());
    const Exchange broken{.status = 500, .failure = "busy", .output_tokens = 9999, .attempt = 7};
    ASSERT_TRUE(store_->save_exchange(*run, 4, broken).ok());
  }
};

TEST_F(ExpectedCosts, AreAGuessWithoutRecords) {
  const auto cost = expected_cost(*store_, "m", 30'000, 12, {});
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->runs, 0);
  EXPECT_GE(cost->tokens(), 6 * 13'000);
  EXPECT_EQ(cost->dollars, 0);
  EXPECT_THAT(to_text(*cost), HasSubstr("a guess"));
  // One attempt costs no more than one.
  EXPECT_LT(expected_cost(*store_, "m", 30'000, 1, {})->tokens(), 0.25 * cost->tokens());
}

TEST_F(ExpectedCosts, AreWhatEarlierRunsTook) {
  record(R"({"model": "m"})");
  record(R"({"model": "other"})");
  record(R"({"model": "m", "replay": 1})");
  const auto cost = expected_cost(*store_, "m", 30'000, 12, {.input = 10, .output = 100});
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->runs, 1);
  EXPECT_DOUBLE_EQ(cost->requests, 4);
  EXPECT_DOUBLE_EQ(cost->output_tokens, 1000);
  EXPECT_DOUBLE_EQ(cost->input_tokens, 10'000 + 750);
  EXPECT_DOUBLE_EQ(cost->dollars, 4 * (10'750 * 10e-6 + 1000 * 100e-6));
  EXPECT_EQ(to_text(*cost), "about 4 requests, 47,000 tokens, $0.83 (as 1 earlier run with this model)");
  EXPECT_DOUBLE_EQ(expected_cost(*store_, "m", 30'000, 1, {})->requests, 2);
}

}  // namespace
}  // namespace tilepilot::agent
