// Blocks that wait for each other.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each block adds up what its neighbour wrote.
const KernelText kNeighbours{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  A[blockIdx.x * 32 + threadIdx.x] = int32_t(blockIdx.x * 100 + threadIdx.x);  // write
  sync_grid();  // barrier
  B[blockIdx.x * 32 + threadIdx.x] = A[(blockIdx.x + 1) % gridDim.x * 32 + 31 - threadIdx.x];  // read
  sync_grid();
  A[blockIdx.x * 32 + threadIdx.x] = 0;
}
)"};

TEST(EmulatedGrid, WaitsForAllBlocks) {
  std::vector<int32_t> a(128), b(128), expected(128);
  for (int32_t i = 0; i < 128; ++i) expected[size_t(i)] = (i / 32 + 1) % 4 * 100 + 31 - i % 32;
  const Report report =
      run_kernel(kNeighbours, {.grid = {4, 1, 1}, .cooperative = true}, Buffers().add("A", a).add("B", b));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(b, expected);
  EXPECT_EQ(a, std::vector<int32_t>(128));
}

TEST(EmulatedGrid, FindsAMissingBarrier) {
  std::vector<int32_t> a(128), b(128);
  const Report report = run_kernel(kNeighbours.with("sync_grid();  // barrier", "sync_threads();  // barrier"),
                                   {.grid = {4, 1, 1}, .cooperative = true}, Buffers().add("A", a).add("B", b));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::data_race) << report.defects[0].message;
  EXPECT_THAT(report.defects[0].message, HasSubstr("of block ("));
}

TEST(EmulatedGrid, FindsABarrierWithoutTheOthers) {
  std::vector<int32_t> a(128), b(128);
  const Report report = run_kernel(kNeighbours, {.grid = {4, 1, 1}}, Buffers().add("A", a).add("B", b));
  ASSERT_EQ(report.defects.size(), 1U);
  EXPECT_EQ(report.defects[0].kind, DefectKind::deadlock);
  EXPECT_EQ(report.defects[0].first.line, kNeighbours.line_of("barrier"));
}

// The first block waits for a flag that the last one sets.
TEST(EmulatedGrid, LetsBlocksPoll) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  if (blockIdx.x == 0) {
    while (atomic_read(A + 0) == 0) {}  // poll
    fence_device();
    B[threadIdx.x] = A[1];
  } else if (threadIdx.x == 0) {
    A[1] = 5;
    fence_device();
    atomic_update<put_update>(A + 0, 1);  // flag
  }
}
)"};
  std::vector<int32_t> a(2), b(32);
  const Setting setting{.grid = {2, 1, 1}, .cooperative = true};
  EXPECT_THAT(told(run_kernel(kernel, setting, Buffers().add("A", a).add("B", b))), IsEmpty());
  EXPECT_EQ(b, std::vector<int32_t>(32, 5));
  a = {0, 0};
  const Report report = run_kernel(kernel.with("A + 0, 1);", "A + 0, 0);"), setting, Buffers().add("A", a).add("B", b));
  ASSERT_EQ(report.defects.size(), 1U);
  EXPECT_EQ(report.defects[0].kind, DefectKind::deadlock);
  EXPECT_EQ(report.defects[0].first.line, kernel.line_of("poll"));
}

// The block knows what the flag told it, however often others have their turn while it waits for its own barrier.
TEST(EmulatedGrid, BlocksStayOrderedWhileOthersRun) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  shared_array<uint64_t> full = shared_tile<uint64_t>(0, 1);
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      barrier_init(full, 1);
      while (atomic_read(A + 0) == 0) {}  // poll
      fence_device();
      for (int i = 0; i < 70000 && !barrier_passed(full, 0); ++i) {}
    }
    sync_threads();
    B[threadIdx.x] = A[1];  // use
  } else if (threadIdx.x == 0) {
    A[1] = 5;  // give
    fence_device();
    atomic_update<put_update>(A + 0, 1);
  }
}
)"};
  std::vector<int32_t> a(2), b(32);
  const Setting setting{.shared_bytes = 8, .grid = {2, 1, 1}, .cooperative = true};
  EXPECT_THAT(told(run_kernel(kernel, setting, Buffers().add("A", a).add("B", b))), IsEmpty());
  EXPECT_EQ(b, std::vector<int32_t>(32, 5));
  const KernelText unknown = kernel.with("while (atomic_read(A + 0) == 0) {}", "");
  const Report report = run_kernel(unknown, setting, Buffers().add("A", a).add("B", b));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::data_race) << report.defects[0].message;
  EXPECT_EQ(report.defects[0].second.line, kernel.line_of("use"));
}

// What orders blocks before a barrier of the grid orders nothing of what they do after it.
TEST(EmulatedGrid, BlocksThatWereOrderedRaceAfterABarrier) {
  std::vector<int32_t> a(128), b(128);
  const std::string first = "  A[blockIdx.x * 32 + threadIdx.x] = int32_t(";
  const KernelText kernel = kNeighbours.with(first, "  atomic_update<add_update>(B + 0, 1); sync_grid();\n" + first)
                                .with("sync_grid();  // barrier", "sync_threads();");
  const Report report = run_kernel(kernel, {.grid = {4, 1, 1}, .cooperative = true}, Buffers().add("A", a).add("B", b));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].kind, DefectKind::data_race) << report.defects[0].message;
}

// The last block to come adds up what all of them have left.
TEST(EmulatedGrid, BlocksAreOrderedByFencesAndAtomicElements) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int32_t> parts, global_array<int32_t> count, global_array<int32_t> sum) {
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = blockIdx.x + 1;  // part
    fence_device();  // release
    if (atomic_update<add_update>(count + 0, 1) == 2) {
      fence_device();  // acquire
      sum[0] = parts[0] + parts[1] + parts[2];  // sum
    }
  }
}
)"};
  std::vector<int32_t> parts(3), count(1), sum(1);
  const auto run = [&](const KernelText& text) {
    count = {0};
    return run_kernel(text, {.grid = {3, 1, 1}}, Buffers().add("parts", parts).add("count", count).add("sum", sum));
  };
  EXPECT_THAT(told(run(kernel)), IsEmpty());
  EXPECT_EQ(sum[0], 6);
  for (const char* fence : {"    fence_device();  // release\n", "      fence_device();  // acquire\n"}) {
    const Report report = run(kernel.with(fence, "\n"));
    ASSERT_FALSE(report.defects.empty()) << fence;
    EXPECT_EQ(report.defects[0].kind, DefectKind::data_race) << report.defects[0].message;
    EXPECT_EQ(report.defects[0].first.line, kernel.line_of("part"));
    EXPECT_EQ(report.defects[0].second.line, kernel.line_of("sum"));
  }
}

// The first block of a pair fetches for both, once both have used what was there.
const KernelText kPair{R"(
extern "C" __global__ void __launch_bounds__(64) main_0(global_array<float> A, global_array<float> B, const __grid_constant__ tensor_map A_map) {
  shared_array<float> tile = shared_tile<float>(0, 256);
  shared_array<uint64_t> full = shared_tile<uint64_t>(1024, 1);
  shared_array<uint64_t> empty = shared_tile<uint64_t>(1032, 1);
  if (threadIdx.x == 0) {
    barrier_init(full, 1);
    barrier_init(empty, 2);
    fence_barriers();
  }
  sync_cluster();  // made
  for (int step = 0; step < 4; ++step) {
    if (threadIdx.x == 0) {
      barrier_arrive_expect(full, 1024);
      if (block_of_cluster() == 0) {
        barrier_wait(empty, (step & 1) ^ 1);  // wait empty
        tma_load_multicast_2d(tile, A_map, full, 3, 0, step * 16);  // fetch
      }
    }
    barrier_wait(full, step & 1);  // wait full
    B[(step * gridDim.x + blockIdx.x) * 64 + threadIdx.x] = tile[threadIdx.x * 4 + blockIdx.x % 4];  // use
    sync_threads();
    if (threadIdx.x == 0) {
      barrier_arrive_remote(empty, 0);  // release
    }
  }
  sync_cluster();  // end
}
)"};

Report run_pair(const KernelText& kernel, std::vector<float>& b) {
  std::vector<float> a(64 * 16);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(i);
  const TensorMap map{.rank = 2, .element_bytes = 4, .extents = {16, 64}, .strides = {4, 64}, .box = {16, 16}};
  return run_kernel(kernel,
                    {.threads = 64, .shared_bytes = 1040, .grid = {4, 1, 1}, .maps = {map}, .cluster = {2, 1, 1}},
                    Buffers().add("A", a).add("B", b));
}

TEST(EmulatedCluster, SharesCopies) {
  std::vector<float> b(4 * 4 * 64), expected(b.size());
  for (size_t i = 0; i < b.size(); ++i) expected[i] = float(i / 256 * 256 + i % 64 * 4 + i / 64 % 4);
  const Report report = run_pair(kPair, b);
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(b, expected);
  EXPECT_EQ(report.counters.bulk_copies, 2 * 4);
}

TEST(EmulatedCluster, FindsCopiesOverWhatOtherBlocksUse) {
  std::vector<float> b(4 * 4 * 64);
  const Report report = run_pair(kPair.with("barrier_wait(empty, (step & 1) ^ 1);", ""), b);
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].second.line, kPair.line_of("fetch")) << report.defects[0].message;
}

TEST(EmulatedCluster, TellsWhoWaitsForWhat) {
  std::vector<float> b(4 * 4 * 64);
  const Report report = run_pair(kPair.with("full, 3, 0", "full, 1, 0"), b);
  ASSERT_EQ(report.defects.size(), 1U);
  EXPECT_EQ(report.defects[0].kind, DefectKind::deadlock);
  EXPECT_EQ(report.defects[0].first.line, kPair.line_of("wait empty"));
}

TEST(EmulatedCluster, FindsBarriersUsedBeforeTheyAreMade) {
  std::vector<float> b(4 * 4 * 64);
  const Report report = run_pair(kPair.with("sync_cluster();  // made", "sync_threads();  // made"), b);
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].second.line, kPair.line_of("fetch")) << report.defects[0].message;
}

TEST(EmulatedCluster, FindsBlocksThatLeaveTooEarly) {
  std::vector<float> b(4 * 4 * 64);
  const Report report =
      run_pair(kPair.with("  sync_cluster();  // end", "  if (block_of_cluster() == 1) sync_cluster();  // end"), b);
  ASSERT_EQ(report.defects.size(), 1U);
  EXPECT_EQ(report.defects[0].kind, DefectKind::out_of_bounds);
  EXPECT_EQ(report.defects[0].first.line, kPair.line_of("release"));
  // Nobody comes for what the second one alone has used.
  const KernelText other = kPair.with("  sync_cluster();  // end", "  if (block_of_cluster() == 0) sync_cluster();");
  EXPECT_THAT(told(run_pair(other, b)), IsEmpty());
}

}  // namespace
}  // namespace tilepilot::emulator::testing
