// What eager is measured to spend on each node of a model's graph.
#include "eval/profile/eager_times.h"

#include <gmock/gmock.h>

#include <numeric>

#include "eval/graph/reference.h"
#include "eval/judge.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;

JudgeOptions eager_options() {
  JudgeOptions options;
  options.worker = std::string(TILEPILOT_BINARY_DIR) + "/tilepilot-worker";
  options.trials = 1;
  options.cache = TILEPILOT_KERNEL_CACHE;
  return options;
}

void expect_times_of(const std::filesystem::path& folder, Judge& judge) {
  const auto reference = load_reference(folder);
  ASSERT_TRUE(reference.ok());
  const auto times = judge.eager_times();
  ASSERT_TRUE(times.ok()) << times.error().message;
  ASSERT_EQ(times->node_us.size(), reference->forward.nodes.size());
  EXPECT_THAT(times->node_us, Each(Gt(0)));
  EXPECT_GT(times->call.samples, 0);
  // On a machine where others are at work calls vary a lot.
  const double sum = std::accumulate(times->node_us.begin(), times->node_us.end(), 0.0);
  EXPECT_GT(sum, 0.05 * times->call.low_us);
  EXPECT_LT(sum, 3 * times->call.high_us);
}

TEST(EagerTimesOfJudges, AreMeasuredWithoutTheTruth) {
  const auto folder = testing::exported("tests/torch/models/staged_rows.py");
  JudgeOptions options = eager_options();
  options.eager_only = true;
  auto judge = open_judge(folder, options);
  ASSERT_TRUE(judge.ok()) << judge.error().message;
  expect_times_of(folder, **judge);
  EXPECT_THAT((*judge)->check({.source = "class ModelNew: pass"}).detail, HasSubstr("measures eager alone"));
  const auto compared = (*judge)->compare({{.source = "class ModelNew: pass"}});
  ASSERT_EQ(compared.size(), 1u);
  EXPECT_EQ(compared[0].outcome, Outcome::worker_failed);
}

TEST(EagerTimesOfJudges, AreMeasuredBesideCandidates) {
  const auto folder = testing::exported("tests/torch/models/batch_stats.py");
  auto judge = open_judge(folder, eager_options());
  ASSERT_TRUE(judge.ok()) << judge.error().message;
  expect_times_of(folder, **judge);
  expect_times_of(folder, **judge);
  EXPECT_EQ((*judge)->check({.source = "class ModelNew("}).outcome, Outcome::compile_error);
}

}  // namespace
}  // namespace tilepilot::eval
