// Hardware barriers, bulk copies and asynchronous products: right kernels, and what goes wrong with them.
#include <gmock/gmock.h>

#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// C (fp32) = A * B^T in tiles of 64 x 64 x 64: threads 128 to 255 fetch, the others multiply.
const KernelText kSpecialised{R"(
extern "C" __global__ void __launch_bounds__(256) main_0(int64_t k, const __grid_constant__ tensor_map A_map, const __grid_constant__ tensor_map B_map, const __grid_constant__ tensor_map C_map) {
  shared_array<float16> A_shared = shared_tile<float16>(0, 8192);
  shared_array<float16> B_shared = shared_tile<float16>(16384, 8192);
  shared_array<float> C_shared = shared_tile<float>(32768, 4096);
  shared_array<uint64_t> full = shared_tile<uint64_t>(49152, 2);
  shared_array<uint64_t> empty = shared_tile<uint64_t>(49168, 2);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      barrier_init(full + stage, 1);  // make
      barrier_init(empty + stage, 128);
    }
    fence_barriers();
  }
  sync_threads();  // made
  if (threadIdx.x >= 128) {
    set_registers_down<40>();
    if (threadIdx.x == 128) {
      for (int step = 0; step < k / 64; ++step) {
        const int stage = step % 2;
        barrier_wait(empty + stage, (step / 2 & 1) ^ 1);  // wait empty
        barrier_arrive_expect(full + stage, 16384);  // expect
        tma_load_2d(A_shared + stage * 4096, A_map, full + stage, step * 64, int(blockIdx.y) * 64);  // fetch A
        tma_load_2d(B_shared + stage * 4096, B_map, full + stage, step * 64, int(blockIdx.x) * 64);  // fetch B
      }
    }
  } else {
    set_registers_up<232>();
    registers<float, 32> C_local;
    for (int step = 0; step < k / 64; ++step) {
      const int stage = step % 2;
      barrier_wait(full + stage, step / 2 & 1);  // wait full
      wgmma_fence();
      for (int i = 0; i < 4; ++i) {
        wgmma_m64n64k16_f32_f16_f16(&C_local[0], matrix_place(A_shared + stage * 4096 + i * 16, 16, 1024, 1), matrix_place(B_shared + stage * 4096 + i * 16, 16, 1024, 1), step > 0 || i > 0);  // product
      }
      wgmma_commit();
      wgmma_wait<0>();  // wait product
      barrier_arrive(empty + stage);  // arrive empty
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = 0; i < 32; ++i) {
      C_shared[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * 64 + i / 4 * 8 + lane % 4 * 2 + i % 2] = C_local[i];  // store
    }
    fence_async();
    sync_named(1, 128);  // stored
    if (threadIdx.x == 0) {
      tma_store_2d(C_map, C_shared, int(blockIdx.x) * 64, int(blockIdx.y) * 64);  // write
      commit_stores();
      wait_stores<0>();
    }
  }
}
)"};

TensorMap map_of(int64_t buffer, int64_t rows, int64_t columns, int32_t bytes, int32_t swizzle) {
  return {.buffer = buffer,
          .rank = 2,
          .element_bytes = bytes,
          .extents = {columns, rows},
          .strides = {bytes, columns * bytes},
          .box = {64, 64},
          .swizzle = swizzle};
}

struct SpecialisedProduct {
  size_t m = 128, n = 64, k = 256;
  std::vector<uint16_t> a = std::vector<uint16_t>(m * k), b = std::vector<uint16_t>(n * k);
  std::vector<float> c = std::vector<float>(m * n, -1), expected = std::vector<float>(m * n);

  SpecialisedProduct(size_t rows, size_t columns, size_t depth) : m(rows), n(columns), k(depth) {
    std::vector<float> x(m * k), y(n * k);
    for (size_t i = 0; i < x.size(); ++i) a[i] = to_half_bits(x[i] = float(i * 7 % 13) - 6);
    for (size_t i = 0; i < y.size(); ++i) b[i] = to_half_bits(y[i] = float(i * 5 % 11) / 2 - 2);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j)
        for (size_t l = 0; l < k; ++l) expected[i * n + j] += x[i * k + l] * y[j * k + l];
  }
  Report run(const KernelText& kernel) {
    const Setting setting{.threads = 256,
                          .shared_bytes = 49184,
                          .grid = {int64_t(n + 63) / 64, int64_t(m + 63) / 64, 1},
                          .scalars = {int64_t(k)},
                          .maps = {map_of(0, int64_t(m), int64_t(k), 2, 128), map_of(1, int64_t(n), int64_t(k), 2, 128),
                                   map_of(2, int64_t(m), int64_t(n), 4, 0)}};
    return run_kernel(kernel.with("main_0(int64_t k",
                                  "main_0(global_array<float16> A, global_array<float16> B, global_array<float> C, "
                                  "int64_t k"),
                      setting, Buffers().add("A", a).add("B", b).add("C", c));
  }
};

Report run_product(const KernelText& kernel) {
  SpecialisedProduct product(64, 64, 256);
  return product.run(kernel);
}

Defect first_of(const Report& report, DefectKind kind) {
  for (const Defect& defect : report.defects)
    if (defect.kind == kind) return defect;
  ADD_FAILURE() << name_of(kind) << " was not found; told: " << ::testing::PrintToString(told(report));
  return {};
}

void expect_lines(const Report& report, DefectKind kind, const char* first, const char* second) {
  const Defect defect = first_of(report, kind);
  EXPECT_EQ(defect.first.line, kSpecialised.line_of(first)) << defect.message;
  EXPECT_EQ(defect.second.line, kSpecialised.line_of(second)) << defect.message;
}

TEST(AsyncProxy, RunsASpecialisedKernel) {
  SpecialisedProduct product(128, 128, 256);
  const Report report = product.run(kSpecialised);
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(product.c, product.expected);
  EXPECT_EQ(report.counters.wgmma, 4 * 4 * 4 * 4);
  EXPECT_EQ(report.counters.bulk_copies, 4 * (4 * 2 + 1));
}

TEST(AsyncProxy, FillsBoxesBeyondTheTensorWithZeros) {
  SpecialisedProduct product(72, 48, 136);
  const Report report = product.run(kSpecialised.with("step < k / 64", "step < (k + 63) / 64"));
  EXPECT_THAT(told(report), IsEmpty());
  EXPECT_EQ(product.c, product.expected);
}

TEST(AsyncProxy, FindsProductsThatDoNotWaitForCopies) {
  const Report report = run_product(kSpecialised.with("barrier_wait(full + stage, step / 2 & 1);", ""));
  ASSERT_FALSE(report.defects.empty());
  EXPECT_EQ(report.defects[0].second.line, kSpecialised.line_of("product"));
}

TEST(AsyncProxy, FindsCopiesThatDoNotWaitForProducts) {
  const Report report = run_product(kSpecialised.with("barrier_wait(empty + stage, (step / 2 & 1) ^ 1);", ""));
  ASSERT_FALSE(report.defects.empty()) << "nothing told";
  EXPECT_EQ(report.defects[0].second.line, kSpecialised.line_of("fetch A"));
}

TEST(AsyncProxy, FindsStagesGivenBackTooEarly) {
  const KernelText wrong = kSpecialised.with("      wgmma_wait<0>();  // wait product\n", "")
                               .with("    const int lane", "    wgmma_wait<0>();\n    const int lane");
  expect_lines(run_product(wrong), DefectKind::data_race, "product", "fetch A");
}

TEST(AsyncProxy, FindsAMissingFence) {
  expect_lines(run_product(kSpecialised.with("    fence_async();\n", "    \n")), DefectKind::missing_fence, "store",
               "write");
}

TEST(AsyncProxy, FindsAMissingBarrierBeforeAStore) {
  expect_lines(run_product(kSpecialised.with("sync_named(1, 128);", "")), DefectKind::uninitialised_read, "write",
               "write");
}

TEST(AsyncProxy, FindsSumsReadBeforeTheyAreThere) {
  SpecialisedProduct product(64, 64, 64);
  const Report report = product.run(kSpecialised.with("wgmma_wait<0>();", "wgmma_wait<1>();"));
  expect_lines(report, DefectKind::uninitialised_read, "store", "store");
}

TEST(AsyncProxy, TellsWhatABarrierLacks) {
  const Report report = run_product(kSpecialised.with("full + stage, 16384", "full + stage, 16400"));
  EXPECT_THAT(first_of(report, DefectKind::deadlock).message, HasSubstr("whose phase 0 lacks 16 bytes (kernel.py:32)"));
}

TEST(AsyncProxy, TellsDeadlocksWhereAThreadWaits) {
  const KernelText kernel{R"(
extern "C" __global__ void __launch_bounds__(64) main_0(global_array<int32_t> A) {
  shared_array<uint64_t> full = shared_tile<uint64_t>(0, 1);
  if (threadIdx.x == 0) {
    barrier_init(full, 64);
    fence_barriers();
  }
  sync_threads();
  if (threadIdx.x < 32) {
    barrier_wait(full, 0);  // wait
  } else {
    A[threadIdx.x] = 1;  // end
  }
}
)"};
  std::vector<int32_t> a(64);
  const Report report = run_kernel(kernel, {64, 16}, Buffers().add("A", a));
  EXPECT_EQ(first_of(report, DefectKind::deadlock).second.line, kernel.line_of("wait"));
}

TEST(AsyncProxy, FindsMisuseOfBarriers) {
  const Report many =
      run_product(kSpecialised.with("barrier_init(empty + stage, 128);", "barrier_init(empty + stage, 64);"));
  EXPECT_FALSE(many.defects.empty());
  const Report unmade = run_product(kSpecialised.with("stage < 2; ++stage", "stage < 1; ++stage"));
  EXPECT_THAT(first_of(unmade, DefectKind::barrier_misuse).message, HasSubstr("that nobody has made"));
  const Report early = run_product(kSpecialised.with("sync_threads();  // made", "// made"));
  EXPECT_EQ(first_of(early, DefectKind::data_race).second.line, kSpecialised.line_of("wait full"));
}

TEST(AsyncProxy, FindsBarriersThatTheEngineNeedNotKnow) {
  expect_lines(run_product(kSpecialised.with("    fence_barriers();\n", "    \n")), DefectKind::missing_fence, "make",
               "fetch A");
  const KernelText other = kSpecialised.with("    fence_barriers();\n", "    fence_async();\n");
  EXPECT_THAT(told(run_product(other)), IsEmpty());
}

// A barrier that was used since must still be known to have been made.
TEST(AsyncProxy, FindsBarriersKnownByTheirUseAlone) {
  const KernelText kernel{R"(
extern "C" __global__ void __launch_bounds__(64) main_0(global_array<int32_t> A) {
  shared_array<uint64_t> full = shared_tile<uint64_t>(0, 1);
  if (threadIdx.x == 0) {
    barrier_init(full, 1);  // make
  }
  sync_threads();
  if (threadIdx.x == 0) {
    A[0] = 1;
    barrier_arrive(full);
  }
  barrier_wait(full, 0);  // wait
  A[threadIdx.x + 1] = A[0];
}
)"};
  std::vector<int32_t> a(65);
  const Setting setting{.threads = 64, .shared_bytes = 8};
  EXPECT_THAT(told(run_kernel(kernel, setting, Buffers().add("A", a))), IsEmpty());
  const Report report = run_kernel(kernel.with("  sync_threads();\n", "  \n"), setting, Buffers().add("A", a));
  const Defect race = first_of(report, DefectKind::data_race);
  EXPECT_EQ(race.first.line, kernel.line_of("make")) << race.message;
  EXPECT_EQ(race.second.line, kernel.line_of("wait")) << race.message;
}

TEST(AsyncProxy, FindsBlocksThatEndBeforeTheirStoresHaveRead) {
  expect_lines(run_product(kSpecialised.with("      wait_stores<0>();\n", "      \n")), DefectKind::pending_copy,
               "write", "write");
}

// One fetch more than there are products.
TEST(AsyncProxy, FindsBlocksThatEndBeforeTheirLoadsHaveWritten) {
  const KernelText wrong = kSpecialised.with("for (int step = 0; step < k / 64; ++step) {\n        const int stage",
                                             "for (int step = 0; step <= k / 64; ++step) {\n        const int stage");
  const Report report = run_product(wrong);
  expect_lines(report, DefectKind::pending_copy, "fetch A", "fetch A");
  EXPECT_EQ(report.defects.size(), 2U) << ::testing::PrintToString(told(report));
}

TEST(AsyncProxy, FindsBlocksThatEndBeforeTheirProductsHaveRead) {
  const Report report = run_product(kSpecialised.with("    fence_async();\n",
                                                      "    wgmma_fence(); wgmma_m64n64k16_f32_f16_f16(&C_local[0], "
                                                      "matrix_place(A_shared, 16, 1024, 1), matrix_place(B_shared, 16, "
                                                      "1024, 1), 0); wgmma_commit(); fence_async();  // last\n"));
  const Defect defect = first_of(report, DefectKind::pending_copy);
  EXPECT_EQ(defect.second.line, kSpecialised.line_of("store") + 2) << defect.message;
}

TEST(AsyncProxy, FindsBoxesThatTheHardwareDoesNotHave) {
  const Report report =
      run_product(kSpecialised.with("A_shared + stage * 4096, A_map", "A_shared + stage * 4096 + 8, A_map"));
  expect_lines(report, DefectKind::misaligned, "fetch A", "fetch A");
}

}  // namespace
}  // namespace tilepilot::emulator::testing
