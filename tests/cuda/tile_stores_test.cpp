// GEMMs whose results no TMA can store, since rows of the tensor are no multiples of 16 bytes: threads store them row
// by row through shared memory. Costs are the emulator's counts, results the interpreter's.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

Launched product(int columns, const std::string& type) {
  return launched(fmt::format(R"(program gemm(a: float16[64, 64], b: float16[{0}, 64], c: {1}[64, {0}]) {{
  kernel bx in {2} threads 128 {{
    shared a_tile: float16[64, 64]
    shared b_tile: float16[64, 64]
    fragment sums: float32[64, 64]
    copy a -> a_tile
    copy b[bx * 64 : +64, 0 : 64] -> b_tile
    gemm sums = a_tile @ b_tile.T
    copy sums -> c[0 : 64, bx * 64 : +64]
  }}
}})",
                              columns, type, (columns + 63) / 64),
                  targets::gpu::Architecture::sm_90a);
}

TEST(TileStores, OfRowsThatTmaCannotStore) {
  for (const char* type : {"float16", "float32"}) {
    for (const int columns : {125, 126, 124, 61}) {
      SCOPED_TRACE(fmt::format("{} of {}", columns, type));
      const Launched run = product(columns, type);
      EXPECT_LE(run.counters.global_writes.global_sectors, run.counters.global_writes.least_sectors * 3 / 2);
    }
  }
}

// Rows of a group that ends within the tile: 50 from row 7 on.
TEST(TileStores, OfRowsThatAConditionNames) {
  const Launched run = launched(
      R"(program f(a: float16[64, 64], b: float16[64, 64], d: float16[64], ends: int32[2], c: float16[128, 128]) {
  kernel bx in 2 threads 128 {
    shared a_tile: float16[64, 64]
    shared b_tile: float16[64, 64]
    fragment sums: float32[64, 64]
    copy a -> a_tile
    copy b -> b_tile
    fill sums = 0.0
    gemm sums += a_tile @ b_tile
    parallel i, j in 64, 64 {
      if ends[0] % 8 + i < 57 {
        c[ends[0] % 8 + i, bx * 64 + j] = float16(sums[i, j] + float32(d[j]))
      }
    }
  }
})",
      targets::gpu::Architecture::sm_90a);
  EXPECT_EQ(run.counters.global_writes.global_sectors, run.counters.global_writes.least_sectors);
  EXPECT_THAT(run.source, ::testing::HasSubstr("stmatrix"));
  EXPECT_THAT(run.explanation, ::testing::HasSubstr("not TMA: a condition says which rows are stored"));
}

TEST(TileStores, LeaveTheRestToTma) {
  const Launched run = product(128, "float16");
  EXPECT_THAT(run.source, ::testing::HasSubstr("tma_store_2d("));
}

}  // namespace
}  // namespace tilepilot::testing
