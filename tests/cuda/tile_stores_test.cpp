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

TEST(TileStores, LeaveTheRestToTma) {
  const Launched run = product(128, "float16");
  EXPECT_THAT(run.source, ::testing::HasSubstr("tma_store_2d("));
}

}  // namespace
}  // namespace tilepilot::testing
