// Right kernels give right results, and nothing is told of them.
#include "tests/emulator/kernels.h"

#include <gmock/gmock.h>

#include <numeric>

namespace tilepilot::emulator::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

TEST(EmulatedKernel, AddsVectors) {
  std::vector<float> a(100), b(100), c(100, -1), expected(100);
  for (size_t i = 0; i < 100; ++i) a[i] = float(i), b[i] = float(i) / 4, expected[i] = a[i] + b[i];
  const Report report =
      run_kernel(vector_add(), {.grid = {4, 1, 1}, .scalars = {100}}, Buffers().add("A", a).add("B", b).add("C", c));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(c, expected);
}

TEST(EmulatedKernel, TurnsAroundThroughSharedMemory) {
  std::vector<int32_t> a(128), b(128), expected(128);
  std::iota(a.begin(), a.end(), 0);
  for (size_t i = 0; i < 128; ++i) expected[i] = a[i / 64 * 64 + 63 - i % 64];
  const Report report =
      run_kernel(reverse(), {.threads = 64, .shared_bytes = 256, .grid = {2, 1, 1}}, Buffers().add("A", a).add("B", b));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(b, expected);
  EXPECT_EQ(report.counters.block_syncs, 2);
}

TEST(EmulatedKernel, SumsWithShuffles) {
  std::vector<float> a(128), b(1);
  std::iota(a.begin(), a.end(), 0);
  const Report report =
      run_kernel(block_sum(), {.threads = 128, .shared_bytes = 16}, Buffers().add("A", a).add("B", b));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(b[0], 127 * 64);
  EXPECT_EQ(report.counters.shuffles, 4 * 5);
}

TEST(EmulatedKernel, MultipliesMatricesPlainly) {
  constexpr size_t n = 48;
  std::vector<float> a(n * n), b(n * n), c(n * n), expected(n * n);
  for (size_t i = 0; i < n * n; ++i) a[i] = float(i % 7) - 3, b[i] = float(i % 5) - 2;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t k = 0; k < n; ++k) expected[i * n + j] += a[i * n + k] * b[k * n + j];
  const Report report =
      run_kernel(plain_gemm(), {.threads = 256, .shared_bytes = 2048, .grid = {3, 3, 1}, .scalars = {n}},
                 Buffers().add("A", a).add("B", b).add("C", c));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(c, expected);
}

struct TensorGemm {
  size_t m, n, k;
  std::vector<uint16_t> a, b;
  std::vector<float> c, expected;

  TensorGemm(size_t m, size_t n, size_t k) : m(m), n(n), k(k), a(m * k), b(n * k), c(m * n, -1), expected(m * n) {
    std::vector<float> x(m * k), y(n * k);
    for (size_t i = 0; i < x.size(); ++i) a[i] = to_half_bits(x[i] = float(i * 7 % 13) - 6);
    for (size_t i = 0; i < y.size(); ++i) b[i] = to_half_bits(y[i] = float(i * 5 % 11) / 2 - 2);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j)
        for (size_t l = 0; l < k; ++l) expected[i * n + j] += x[i * k + l] * y[j * k + l];
  }
  Report run(const KernelText& kernel, const Options& options = {}) {
    const Setting setting{.threads = 128,
                          .shared_bytes = kTensorGemmShared,
                          .grid = {int64_t(n + 127) / 128, int64_t(m + 127) / 128, 1},
                          .scalars = {int64_t(m), int64_t(n), int64_t(k)},
                          .options = options};
    return run_kernel(kernel, setting, Buffers().add("A", a).add("B", b).add("C", c));
  }
};

TEST(EmulatedKernel, MultipliesMatricesOnTensorCores) {
  TensorGemm gemm(256, 256, 256);
  const Report report = gemm.run(tensor_gemm());
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(gemm.c, gemm.expected);
  EXPECT_EQ(report.counters.mma, 4 * 8 * 4 * 2 * 32);
  EXPECT_EQ(report.counters.ldmatrix, 4 * 8 * 4 * 2 * 8);
  EXPECT_EQ(report.counters.shared_reads.bank_conflicts, 0);
  EXPECT_EQ(report.counters.shared_writes.bank_conflicts, 0);
}

TEST(EmulatedKernel, FillsTheTailsOfTilesWithZeros) {
  TensorGemm gemm(136, 40, 64);
  const Report report = gemm.run(tensor_gemm());
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(gemm.c, gemm.expected);
}

TEST(EmulatedKernel, RunsWithoutChecks) {
  TensorGemm gemm(128, 128, 64);
  const Report report = gemm.run(tensor_gemm(), {.check_races = false, .check_uninitialised = false, .count = false});
  EXPECT_EQ(gemm.c, gemm.expected);
  EXPECT_EQ(report.counters.shared_reads.instructions, 4 * 2 * 2 * 8);  // ldmatrix only
}

}  // namespace
}  // namespace tilepilot::emulator::testing
