// What the emulator records of a block's warps, against what it counts.
#include "compiler/emulator/report/step_log.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::IsEmpty;

struct Product {
  std::vector<uint16_t> a = std::vector<uint16_t>(256 * 64), b = std::vector<uint16_t>(128 * 64);
  std::vector<float> c = std::vector<float>(256 * 128);

  Report run(const Options& options, const KernelText& kernel = tensor_gemm()) {
    return run_kernel(kernel,
                      {.threads = 128,
                       .shared_bytes = kTensorGemmShared,
                       .grid = {1, 2, 1},
                       .scalars = {256, 128, 64},
                       .options = options},
                      Buffers().add("A", a).add("B", b).add("C", c));
  }
};

int64_t count(const StepLog& log, StepKind kind) {
  return std::count_if(log.steps().begin(), log.steps().end(), [&](const Step& step) { return step.kind == kind; });
}

TEST(StepLog, HasWhatIsCounted) {
  StepLog log;
  const Report report = Product().run({.most_blocks = 1, .steps = &log});
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_FALSE(log.is_cut());
  EXPECT_EQ(count(log, StepKind::mma), report.counters.mma);
  EXPECT_EQ(count(log, StepKind::copy), report.counters.async_copies);
  EXPECT_EQ(count(log, StepKind::global_write), report.counters.global_writes.instructions);
  EXPECT_EQ(count(log, StepKind::global_read), 0);  // those of copies are no steps of their own
  int64_t matrices = 0, wavefronts = 0;
  for (const Step& step : log.steps()) {
    EXPECT_LT(step.warp, 4);
    if (step.kind != StepKind::load_matrix) continue;
    matrices += step.traffic.instructions;
    wavefronts += step.traffic.shared_wavefronts;
    EXPECT_EQ(step.traffic.bank_conflicts, 0);
  }
  EXPECT_EQ(matrices, report.counters.ldmatrix);
  EXPECT_EQ(wavefronts, report.counters.shared_reads.shared_wavefronts);
}

TEST(StepLog, ChangesNothingThatIsCounted) {
  StepLog log;
  const Report with = Product().run({.steps = &log}), without = Product().run({});
  EXPECT_EQ(with.counters.mma, without.counters.mma);
  EXPECT_EQ(with.counters.shared_reads.shared_wavefronts, without.counters.shared_reads.shared_wavefronts);
  EXPECT_EQ(with.counters.shared_writes.instructions, without.counters.shared_writes.instructions);
  EXPECT_EQ(with.counters.global_reads.global_sectors, without.counters.global_reads.global_sectors);
  EXPECT_EQ(with.counters.block_syncs, without.counters.block_syncs);
}

TEST(StepLog, IsOfTheBlocksThatAreAskedFor) {
  Product first, second;
  const Report all = first.run({});
  StepLog log;
  const Report one = second.run({.first_block = 1, .most_blocks = 1, .steps = &log});
  EXPECT_EQ(2 * one.counters.mma, all.counters.mma);
  EXPECT_EQ(count(log, StepKind::mma), one.counters.mma);
}

TEST(StepLog, EndsALaunchThatIsTooLong) {
  StepLog few(100);
  const Report report = Product().run({.steps = &few});
  EXPECT_TRUE(few.is_cut());
  EXPECT_GE(few.steps().size(), 100u);
  EXPECT_LT(few.steps().size(), 1000u);
  EXPECT_THAT(told(report), IsEmpty());
  StepLog little(1'000'000, 16 * 8 * 16 * 10.0);
  Product().run({.steps = &little});
  EXPECT_TRUE(little.is_cut());
  EXPECT_LT(count(little, StepKind::mma), 100);
}

// Conflicts of unswizzled tiles have the line and the tile that they are of.
TEST(StepLog, HasTheConflictsOfEachAccess) {
  StepLog log;
  Product().run({.most_blocks = 1, .steps = &log}, tensor_gemm().with("(chunk ^ (row / 2 % 4))", "chunk"));
  for (const Step& step : log.steps()) {
    if (step.kind != StepKind::load_matrix) continue;
    EXPECT_EQ(step.traffic.shared_wavefronts, 4);
    EXPECT_EQ(step.traffic.bank_conflicts, 3);
    EXPECT_GE(step.tile, 0);
    EXPECT_GT(step.line.line, 0);
  }
}

// Lanes whose call the compiler has written twice come to the barrier together.
TEST(StepLog, PutsLanesTogetherThatTookDifferentWays) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<float> A) {
  if (threadIdx.x == 0) { A[1] = 1; sync_threads(); } else { sync_threads(); }
  A[threadIdx.x] = 2;
}
)"};
  std::vector<float> a(64);
  StepLog log;
  run_kernel(kernel, {.threads = 64, .options = {.steps = &log}}, Buffers().add("A", a));
  EXPECT_EQ(count(log, StepKind::block_sync), 2);
  for (const Step& step : log.steps()) EXPECT_TRUE(step.kind != StepKind::block_sync || step.lanes == 32);
}

}  // namespace
}  // namespace tilepilot::emulator::testing
