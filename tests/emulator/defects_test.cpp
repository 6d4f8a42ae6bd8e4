// Each kind of defect, planted in a right kernel, is found, and told with the lines where it is.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The first defect of a kind.
const Defect* find(const Report& report, DefectKind kind) {
  for (const Defect& defect : report.defects)
    if (defect.kind == kind) return &defect;
  return nullptr;
}

// What was planted: the kernel's one defect or the first of several.
void expect_defect(const Report& report, DefectKind kind, int64_t first, int64_t second) {
  const Defect* defect = find(report, kind);
  ASSERT_NE(defect, nullptr) << name_of(kind) << " was not found; told: " << ::testing::PrintToString(told(report));
  EXPECT_EQ(defect->first, (SourceLine{"kernel.py", first})) << defect->message;
  EXPECT_EQ(defect->second, (SourceLine{"kernel.py", second})) << defect->message;
}

// Which part comes first depends on whose turn it was.
void expect_race(const Report& report, int64_t one, int64_t other) {
  const Defect* defect = find(report, DefectKind::data_race);
  ASSERT_NE(defect, nullptr) << ::testing::PrintToString(told(report));
  EXPECT_THAT((std::vector{defect->first.line, defect->second.line}), ::testing::UnorderedElementsAre(one, other))
      << defect->message;
}

Report run_reverse(const KernelText& kernel, int64_t shared_bytes = 256) {
  std::vector<int32_t> a(64, 1), b(64);
  for (size_t i = 0; i < a.size(); ++i) a[i] = int32_t(i);
  return run_kernel(kernel, {.threads = 64, .shared_bytes = shared_bytes}, Buffers().add("A", a).add("B", b));
}

Report run_sum(const KernelText& kernel) {
  std::vector<float> a(128, 1), b(1);
  return run_kernel(kernel, {.threads = 128, .shared_bytes = 16}, Buffers().add("A", a).add("B", b));
}

Report run_plain_gemm(const KernelText& kernel) {
  std::vector<float> a(32 * 32), b(32 * 32), c(32 * 32);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(i), b[i] = float(i) / 2;
  return run_kernel(kernel, {.threads = 256, .shared_bytes = 2048, .grid = {2, 2, 1}, .scalars = {32}},
                    Buffers().add("A", a).add("B", b).add("C", c));
}

Report run_tensor_gemm(const KernelText& kernel) {
  std::vector<uint16_t> a(128 * 128), b(128 * 128);
  std::vector<float> c(128 * 128);
  return run_kernel(kernel, {.threads = 128, .shared_bytes = kTensorGemmShared, .scalars = {128, 128, 128}},
                    Buffers().add("A", a).add("B", b).add("C", c));
}

TEST(PlantedDefect, MissingBarrierAfterWrites) {
  const KernelText& right = reverse();
  const Report report = run_reverse(right.with("  sync_threads();", "  "));
  expect_defect(report, DefectKind::uninitialised_read, right.line_of("turn"), right.line_of("turn"));
  const KernelText& gemm = plain_gemm();
  const Report unsynchronised = run_plain_gemm(gemm.with("    sync_threads();  // loaded", "    // loaded"));
  expect_race(unsynchronised, gemm.line_of("load A"), gemm.line_of("product"));
}

TEST(PlantedDefect, MissingBarrierBeforeWrites) {
  const KernelText& right = plain_gemm();
  const Report report = run_plain_gemm(right.with("    sync_threads();  // used", "    // used"));
  expect_race(report, right.line_of("product"), right.line_of("load A"));
  EXPECT_THAT(find(report, DefectKind::data_race)->message, HasSubstr("shared tile"));
}

TEST(PlantedDefect, BarrierOfTheWarpOnly) {
  const KernelText& right = reverse();
  const Report report = run_reverse(right.with("  sync_threads();", "  sync_warp();"));
  expect_defect(report, DefectKind::uninitialised_read, right.line_of("turn"), right.line_of("turn"));
}

TEST(PlantedDefect, MissingWaitForCopies) {
  const KernelText& right = tensor_gemm();
  const Report report = run_tensor_gemm(right.with("wait_copies<1>();", ""));
  expect_defect(report, DefectKind::pending_copy, right.line_of("first A"), right.line_of("load A"));
}

TEST(PlantedDefect, WaitForTooFewCopies) {
  const KernelText& right = tensor_gemm();
  const Report report = run_tensor_gemm(right.with("wait_copies<1>();", "wait_copies<2>();"));
  EXPECT_NE(find(report, DefectKind::pending_copy), nullptr);
}

TEST(PlantedDefect, MissingBarrierAfterWaitForCopies) {
  const KernelText& right = tensor_gemm();
  const Report report = run_tensor_gemm(right.with("    sync_threads();  // barrier", "    // barrier"));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].second.line, right.line_of("load A"));
}

TEST(PlantedDefect, WrongStageOfTheRing) {
  const KernelText& right = tensor_gemm();
  const Report report = run_tensor_gemm(right.with("next = (step + 2) % 3", "next = step % 3"));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_NE(find(report, DefectKind::pending_copy), nullptr);
}

TEST(PlantedDefect, IndexBeyondABuffer) {
  const KernelText& right = vector_add();
  std::vector<float> a(40), b(40), c(40);
  const Report report = run_kernel(right.with("i < n", "i <= n"), {.grid = {2, 1, 1}, .scalars = {40}},
                                   Buffers().add("A", a).add("B", b).add("C", c));
  expect_defect(report, DefectKind::out_of_bounds, right.line_of("add"), right.line_of("add"));
  EXPECT_THAT(report.defects[0].message, HasSubstr("thread 8 reads 4 bytes at byte 160 of `A`, which has 160 bytes"));
  EXPECT_EQ(report.defects[0].block, (std::array<int64_t, 3>{1, 0, 0}));
  EXPECT_EQ(report.defects[0].count, 3);  // A, B and C
}

TEST(PlantedDefect, IndexBeyondASharedTile) {
  const KernelText& right = reverse();
  const Report report = run_reverse(right.with("tile[63 - threadIdx.x]", "tile[64 - int(threadIdx.x)]"), 512);
  expect_defect(report, DefectKind::out_of_bounds, right.line_of("turn"), right.line_of("turn"));
}

TEST(PlantedDefect, TileBeyondTheArena) {
  const KernelText& right = reverse();
  const Report report = run_reverse(right, 128);
  expect_defect(report, DefectKind::out_of_bounds, right.line_of("fill"), right.line_of("fill"));
}

TEST(PlantedDefect, IndexBeyondRegisters) {
  const KernelText& right = block_sum();
  const Report report = run_sum(right.with("sum[0] = A[threadIdx.x];", "sum[threadIdx.x / 127] = A[threadIdx.x];"));
  const Defect* defect = find(report, DefectKind::out_of_bounds);
  ASSERT_NE(defect, nullptr);
  EXPECT_EQ(defect->message, "thread 127 uses register 1 of 1");
}

TEST(PlantedDefect, MisalignedVector) {
  const KernelText& right = tensor_gemm();
  const Report report = run_tensor_gemm(right.with("A + ((m_first + row) * k + stage * 32 + chunk * 8)",
                                                   "A + ((m_first + row) * k + stage * 32 + chunk * 8 + 4)"));
  expect_defect(report, DefectKind::misaligned, right.line_of("first A"), right.line_of("first A"));
}

TEST(PlantedDefect, RegistersReadBeforeTheyAreWritten) {
  const KernelText& right = tensor_gemm();
  const Report report = run_tensor_gemm(right.with("i < 128; ++i", "i < 127; ++i"));
  expect_defect(report, DefectKind::uninitialised_read, right.line_of("mma"), right.line_of("mma"));
  EXPECT_THAT(report.defects[0].message, HasSubstr("register 127 of 128"));
}

TEST(PlantedDefect, SharedMemoryReadBeforeItIsWritten) {
  const KernelText& right = block_sum();
  const Report report = run_sum(right.with("threadIdx.x % 32 == 0", "threadIdx.x == 0"));
  expect_defect(report, DefectKind::uninitialised_read, right.line_of("load"), right.line_of("load"));
}

TEST(PlantedDefect, BufferReadBeforeItIsWritten) {
  std::vector<float> a(32), b(32), c(32);
  const Report report =
      run_kernel(vector_add(), {.scalars = {32}}, Buffers().add("A", a).add("B", b, false).add("C", c, false));
  expect_defect(report, DefectKind::uninitialised_read, vector_add().line_of("add"), vector_add().line_of("add"));
  EXPECT_THAT(report.defects[0].message, HasSubstr("`B`"));
  EXPECT_EQ(report.defects.size(), 1U);
}

TEST(PlantedDefect, BarrierThatSomeThreadsNeverReach) {
  const KernelText right{R"(
extern "C" __global__ void main_0(global_array<int32_t> A) {
  if (threadIdx.x >= 32) {
    A[threadIdx.x] = 1;
    return;  // gone
  }
  sync_threads();  // barrier
}
)"};
  std::vector<int32_t> a(64);
  const Report report = run_kernel(right, {.threads = 64}, Buffers().add("A", a));
  expect_defect(report, DefectKind::barrier_misuse, right.line_of("gone"), right.line_of("barrier"));
}

TEST(PlantedDefect, LanesAtDifferentBarriers) {
  const KernelText wrong{R"(
extern "C" __global__ void main_0(global_array<int32_t> A) {
  if (threadIdx.x % 32 < 16) {
    sync_threads();  // one
  } else {
    sync_threads();  // two
  }
}
)"};
  std::vector<int32_t> a(64);
  const Report report = run_kernel(wrong, {.threads = 64}, Buffers().add("A", a));
  expect_defect(report, DefectKind::divergence, wrong.line_of("one"), wrong.line_of("two"));
}

TEST(PlantedDefect, ShuffleThatSomeLanesSkip) {
  const KernelText wrong{R"(
extern "C" __global__ void main_0(global_array<int32_t> A) {
  if (threadIdx.x < 16) {
    A[threadIdx.x] = shuffle_xor(int32_t(threadIdx.x), 1, 32);  // shuffle
  }
  sync_threads();  // barrier
}
)"};
  std::vector<int32_t> a(64);
  const Report report = run_kernel(wrong, {.threads = 64}, Buffers().add("A", a));
  expect_defect(report, DefectKind::divergence, wrong.line_of("shuffle"), wrong.line_of("barrier"));
}

TEST(PlantedDefect, BarriersInOppositeOrder) {
  const KernelText wrong{R"(
extern "C" __global__ void main_0(global_array<int32_t> A) {
  if (threadIdx.x < 32) {
    sync_named(1, 64);  // one
    sync_named(2, 64);
  } else {
    sync_named(2, 64);  // two
    sync_named(1, 64);
  }
}
)"};
  std::vector<int32_t> a(64);
  const Report report = run_kernel(wrong, {.threads = 64}, Buffers().add("A", a));
  expect_defect(report, DefectKind::deadlock, wrong.line_of("one"), wrong.line_of("two"));
  EXPECT_EQ(report.defects[0].message,
            "threads wait for ever: threads 0-31 at barrier 1 (kernel.py:4), threads 32-63 at barrier 2 (kernel.py:7)");
}

TEST(PlantedDefect, ThreadsThatPollForEver) {
  const KernelText wrong{R"(
extern "C" __global__ void main_0(global_array<int32_t> A) {
  while (atomic_read(A + 0) == 0) {}  // poll
}
)"};
  std::vector<int32_t> a(64);
  const Report report = run_kernel(wrong, {}, Buffers().add("A", a));
  expect_defect(report, DefectKind::deadlock, wrong.line_of("poll"), wrong.line_of("poll"));
}

TEST(PlantedDefect, FlagsWithoutFences) {
  const KernelText right{R"(
extern "C" __global__ void main_0(global_array<int32_t> A, global_array<int32_t> B) {
  if (threadIdx.x == 40) {
    A[1] = 7;  // data
    fence_device();  // release
    atomic_update<put_update>(A + 0, 1);
  } else if (threadIdx.x == 3) {
    while (atomic_read(A + 0) == 0) {}
    fence_device();  // acquire
    B[0] = A[1];  // use
  }
}
)"};
  std::vector<int32_t> a(2), b(1);
  EXPECT_THAT(told(run_kernel(right, {.threads = 64}, Buffers().add("A", a).add("B", b))), IsEmpty());
  EXPECT_EQ(b[0], 7);
  for (const char* fence : {"    fence_device();  // release\n", "    fence_device();  // acquire\n"}) {
    a = {0, 0};
    const Report report = run_kernel(right.with(fence, "\n"), {.threads = 64}, Buffers().add("A", a).add("B", b));
    expect_race(report, right.line_of("data"), right.line_of("use"));
  }
}

TEST(PlantedDefect, BlocksThatWriteTheSame) {
  const KernelText& right = reverse();
  std::vector<int32_t> a(128), b(128);
  for (size_t i = 0; i < a.size(); ++i) a[i] = int32_t(i);
  const Report report =
      run_kernel(right.with("B[blockIdx.x * 64", "B[blockIdx.x * 32"),
                 {.threads = 64, .shared_bytes = 256, .grid = {2, 1, 1}}, Buffers().add("A", a).add("B", b));
  expect_race(report, right.line_of("turn"), right.line_of("turn"));
  EXPECT_THAT(report.defects[0].message, HasSubstr("of block (0, 0, 0)"));
}

TEST(PlantedDefect, AtomicAndPlainUpdates) {
  const KernelText right{R"(
extern "C" __global__ void main_0(global_array<float> A) {
  atomic_update<add_update>(A + 0, 1.0f);  // atomic
}
)"};
  std::vector<float> a(1);
  EXPECT_THAT(told(run_kernel(right, {.threads = 64}, Buffers().add("A", a))), IsEmpty());
  EXPECT_EQ(a[0], 64);
  const KernelText wrong = right.with("atomic_update<add_update>(A + 0, 1.0f)", "A[0] += 1.0f");
  const Report report = run_kernel(wrong, {.threads = 64}, Buffers().add("A", a));
  expect_race(report, right.line_of("atomic"), right.line_of("atomic"));
}

TEST(PlantedDefect, CheckOfTheProgram) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(int64_t n) {
  if (n > 5) {
    fail_check(3);  // check
  }
}
)"};
  EXPECT_THAT(told(run_kernel(kernel, {.scalars = {5}}, {})), IsEmpty());
  const Report report = run_kernel(kernel, {.scalars = {6}}, {});
  expect_defect(report, DefectKind::failed_check, kernel.line_of("check"), kernel.line_of("check"));
  EXPECT_EQ(report.defects[0].number, 3);
}

}  // namespace
}  // namespace tilepilot::emulator::testing
