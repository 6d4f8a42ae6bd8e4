// When the model says that steps happen, of steps that are written down here.
#include "show/replay.h"

#include <gmock/gmock.h>

namespace tilepilot::show::testing {
namespace {

using emulator::Step;
using emulator::StepKind;

const targets::gpu::Machine& machine() { return targets::gpu::machine_of(targets::gpu::Architecture::sm_80); }

Step step(StepKind kind, int32_t warp, int64_t at = -1, int64_t phase = 0, int64_t bytes = 0) {
  Step made{kind, warp, 32, ~uint32_t{0}};
  made.at = at;
  made.phase = phase;
  made.bytes = bytes;
  return made;
}
Step product(int32_t warp) {
  Step made{StepKind::mma, warp, 32, ~uint32_t{0}};
  made.m = 16;
  made.n = 8;
  made.k = 16;
  made.operand_bits = 16;
  return made;
}

// An mma of 2 * 16 * 8 * 16 operations, on a quarter of an A100's 2048 a cycle.
constexpr double kProductCycles = 4096.0 / 512;

TEST(Replay, SharesATensorCoreAmongWarpsOfAQuarter) {
  const std::vector<Step> apart = {product(0), product(1)}, together = {product(0), product(4)};
  EXPECT_EQ(replay({apart, machine(), "", 8}).cycles, kProductCycles);
  EXPECT_EQ(replay({together, machine(), "", 8}).cycles, 2 * kProductCycles);
}

TEST(Replay, LetsAWarpWaitForThePhaseOfABarrier) {
  // Warp 1 loads 3600 bytes, for which warp 0 waits at the barrier at byte 64.
  const std::vector<Step> steps = {step(StepKind::barrier_wait, 0, 64, 0), product(0),
                                   step(StepKind::bulk_load, 1, 64, 0, 3600)};
  const Timeline timeline = replay({steps, machine(), "", 2});
  const double there = 3600 / machine().cache_rate + machine().latency;
  ASSERT_EQ(timeline.rows[0].segments.size(), 2u);
  EXPECT_EQ(timeline.rows[0].segments[0].activity, Activity::wait);
  EXPECT_DOUBLE_EQ(timeline.rows[0].segments[0].end, there);
  EXPECT_DOUBLE_EQ(timeline.cycles, there + kProductCycles);
  EXPECT_EQ(timeline.copies_under_products, 0);
}

TEST(Replay, WaitsForGroupsOfCopiesInTheirOrder) {
  std::vector<Step> steps;
  for (int group = 0; group < 2; ++group) {
    steps.push_back(step(StepKind::copy, 0, 0, 0, 360));
    steps.push_back(step(StepKind::commit_copies, 0));
  }
  steps.push_back(step(StepKind::wait_copies, 0, -1, 1));
  const Timeline first = replay({steps, machine(), "", 1});
  EXPECT_DOUBLE_EQ(first.rows[0].segments.back().end, 10 + machine().latency);
  steps.back().phase = 0;
  EXPECT_DOUBLE_EQ(replay({steps, machine(), "", 1}).rows[0].segments.back().end, 20 + machine().latency);
}

TEST(Replay, LetsAllWarpsComeToABlockBarrier) {
  const std::vector<Step> steps = {product(0), step(StepKind::block_sync, 0, 0, 64),
                                   step(StepKind::block_sync, 1, 0, 64), product(1)};
  const Timeline timeline = replay({steps, machine(), "", 2});
  ASSERT_EQ(timeline.rows[1].segments.size(), 2u);
  EXPECT_EQ(timeline.rows[1].segments[0].activity, Activity::wait);
  EXPECT_GE(timeline.rows[1].segments[1].begin, kProductCycles);
}

TEST(Replay, PaysForBankConflicts) {
  Step read = step(StepKind::shared_read, 0, 0);
  read.traffic.shared_wavefronts = 32;
  const std::vector<Step> steps = {read};
  EXPECT_EQ(replay({steps, machine(), "", 1}).rows[0].segments[0].end, 32);
}

// As in a producer warp, whose first lane works while the others wait at the end.
TEST(Replay, LetsLanesGoOnWhoseNeighboursWait) {
  std::vector<Step> steps = {step(StepKind::cluster_arrive, 0),         step(StepKind::cluster_wait, 0),
                             step(StepKind::bulk_load, 0, 64, 0, 3600), step(StepKind::cluster_arrive, 0),
                             step(StepKind::barrier_wait, 1, 64, 0),    step(StepKind::cluster_arrive, 1),
                             step(StepKind::cluster_wait, 1),           product(1)};
  for (const size_t others : {0, 1}) steps[others].mask = ~uint32_t{1};
  for (const size_t first : {2, 3}) steps[first].mask = 1;
  const double there = 3600 / machine().cache_rate + machine().latency;
  const Timeline timeline = replay({steps, machine(), "", 2});
  EXPECT_DOUBLE_EQ(timeline.cycles, there + kProductCycles);
  EXPECT_EQ(timeline.unplaced, 0);
}

TEST(Replay, EndsWhereStepsAreMissing) {
  const std::vector<Step> steps = {step(StepKind::block_sync, 0, 0, 64), product(0)};
  const Timeline timeline = replay({steps, machine(), "", 1});
  EXPECT_EQ(timeline.rows.size(), 1u);
  EXPECT_EQ(timeline.unplaced, 2);
}

}  // namespace
}  // namespace tilepilot::show::testing
