// What a launch costs, counted by warps.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::IsEmpty;

// Each thread stores to and loads from word `stride` times its number.
KernelText strided(int64_t stride) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<float> A, global_array<float> B) {
  shared_array<float> tile = shared_tile<float>(0, 1024);
  tile[threadIdx.x * STRIDE] = A[threadIdx.x * STRIDE];  // store
  B[threadIdx.x] = tile[threadIdx.x * STRIDE];  // load
}
)"};
  return kernel.with("STRIDE", std::to_string(stride));
}

Report run_strided(int64_t stride) {
  std::vector<float> a(1024), b(32);
  return run_kernel(strided(stride), {.shared_bytes = 4096}, Buffers().add("A", a).add("B", b));
}

TEST(Counters, CountBankConflicts) {
  for (const int64_t stride : {1, 2, 4, 8, 16, 32}) {
    const Report report = run_strided(stride);
    EXPECT_THAT(told(report), IsEmpty());
    EXPECT_EQ(report.counters.shared_writes.instructions, 1);
    EXPECT_EQ(report.counters.shared_writes.shared_wavefronts, stride);
    EXPECT_EQ(report.counters.shared_reads.bank_conflicts, stride - 1);
    EXPECT_EQ(report.counters.shared_lines.at({"kernel.py", strided(stride).line_of("load")}).bank_conflicts,
              stride - 1);
  }
}

TEST(Counters, CountSectors) {
  EXPECT_EQ(run_strided(1).counters.global_reads.global_sectors, 4);
  EXPECT_EQ(run_strided(2).counters.global_reads.global_sectors, 8);
  const Report report = run_strided(8);
  EXPECT_EQ(report.counters.global_reads.global_sectors, 32);
  EXPECT_EQ(report.counters.global_reads.least_sectors, 4);
  EXPECT_EQ(report.counters.global_reads.bytes, 128);
  EXPECT_EQ(report.counters.global_writes.global_sectors, 4);
}

// A lane that skips an access takes no part in it, and takes part in the next.
TEST(Counters, PutLanesTogetherThatTookDifferentWays) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<float> A, global_array<float> B) {
  if (threadIdx.x % 4 == 0) {
    B[threadIdx.x] = A[threadIdx.x];
  }
  B[threadIdx.x + 32] = A[threadIdx.x];
}
)"};
  std::vector<float> a(32), b(64);
  const Report report = run_kernel(kernel, {}, Buffers().add("A", a).add("B", b));
  EXPECT_EQ(report.counters.global_reads.instructions, 2);
  EXPECT_EQ(report.counters.global_reads.bytes, 32 + 128);
}

// More accesses than a lane's log holds.
TEST(Counters, CountLongLoops) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<float> A, global_array<float> B) {
  registers<float, 1> sum;
  sum[0] = 0;
  for (int64_t i = 0; i < 5000; ++i) {
    sum[0] += A[i * 32 + threadIdx.x];
  }
  B[threadIdx.x] = sum[0];
}
)"};
  std::vector<float> a(32 * 5000, 1), b(64);
  const Report report = run_kernel(kernel, {.threads = 32}, Buffers().add("A", a).add("B", b));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(b[31], 5000);
  EXPECT_EQ(report.counters.global_reads.instructions, 5000);
  EXPECT_EQ(report.counters.global_reads.bytes, 5000 * 128);
}

TEST(Counters, CountUnswizzledTiles) {
  const KernelText plain = tensor_gemm().with("(chunk ^ (row / 2 % 4))", "chunk");
  std::vector<uint16_t> a(128 * 32), b(128 * 32);
  std::vector<float> c(128 * 128);
  const Report report =
      run_kernel(plain, {.threads = 128, .shared_bytes = kTensorGemmShared, .scalars = {128, 128, 32}},
                 Buffers().add("A", a).add("B", b).add("C", c));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(report.counters.shared_reads.instructions, 4 * 2 * 8);
  EXPECT_EQ(report.counters.shared_reads.shared_wavefronts, 4 * 2 * 8 * 4 * 4);
  EXPECT_EQ(report.counters.shared_reads.bank_conflicts, 4 * 2 * 8 * 4 * 3);
  EXPECT_EQ(report.counters.async_copies, 4 * 2 * 2 * 4);
}

}  // namespace
}  // namespace tilepilot::emulator::testing
