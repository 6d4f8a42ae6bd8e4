// Which fragments the threads store to tensors themselves, and which go through shared memory and TMA.
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Each thread has as many elements of a row together as it takes factors in 16 bytes: four.
std::string scaling(const std::string& columns) {
  return "program f(x: float16[64, " + columns + "], o: float16[64, " + columns + "]) {\n" +
         "  kernel bx in 1 threads 128 {\n    shared s: float16[64, " + columns + "]\n    shared c: float32[" +
         columns + "]\n    fragment f: float16[64, " + columns +
         "]\n    copy x -> s\n    fill c = 2.0\n    parallel i, j in 64, " + columns +
         " {\n      f[i, j] = float16(float32(s[i, j]) * c[j])\n    }\n    copy f -> o\n  }\n}";
}

// A warp writes two rows of 128 bytes.
TEST(DirectStores, OfWholeLines) {
  EXPECT_THAT(expect_interpreted(scaling("64"), {Architecture::sm_90a}),
              AllOf(Not(HasSubstr("tma_store")), HasSubstr("copy_vector<8>(o + ")));
}

// The accumulators of tensor cores are 32 bytes of a row in a warp.
TEST(DirectStores, AreNotMadeOfPartsOfLines) {
  EXPECT_THAT(expect_interpreted(R"(program f(a: float16[64, 64], b: float16[64, 64], o: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 64]
    shared b_tile: float16[64, 64]
    fragment sums: float32[64, 64]
    copy a -> a_tile
    copy b -> b_tile
    fill sums = 0.0
    gemm sums += a_tile @ b_tile.T
    copy sums -> o
  }
})",
                                 {Architecture::sm_90a}),
              HasSubstr("tma_store"));
}

}  // namespace
}  // namespace tilepilot::testing
