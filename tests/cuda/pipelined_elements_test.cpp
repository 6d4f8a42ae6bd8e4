// Copies that run ahead in pieces of less than 16 bytes: lanes have neighbours, whatever the size of a piece.
#include <gmock/gmock.h>

#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

constexpr int64_t kTile = 64 * 32;

// Rows of an odd number of elements are moved one by one.
TEST(PipelinedElements, OfOddRows) {
  const Launched run = launched(R"(program f(a: float16[64, 191], b: float16[191, 63], c: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 32]
    shared b_tile: float16[32, 64]
    fragment s: float32[64, 64]
    fill s = 0.0
    pipelined k in 5 stages 2 {
      copy a[0 : +64, k * 32 : +32] -> a_tile
      copy b[k * 32 : +32, 0 : +64] -> b_tile
      gemm s += a_tile @ b_tile
    }
    copy s -> c
  }
})");
  EXPECT_LE(run.counters.global_reads.global_sectors, 2 * 5 * kTile * 2 / 32 * 8 / 5);
  EXPECT_LE(run.counters.shared_writes.shared_wavefronts, 2 * 5 * kTile / 32);
}

// Rows of 8 bytes more than a multiple of 16.
TEST(PipelinedElements, OfRowsOfHalfVectors) {
  const Launched run = launched(R"(program f(a: float16[64, 164], b: float16[164, 64], c: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 32]
    shared b_tile: float16[32, 64]
    fragment s: float32[64, 64]
    fill s = 0.0
    pipelined k in 5 stages 2 {
      copy a[0 : +64, k * 32 : +32] -> a_tile
      copy b[k * 32 : +32, 0 : +64] -> b_tile
      gemm s += a_tile @ b_tile
    }
    copy s -> c
  }
})");
  EXPECT_LE(run.counters.global_reads.global_sectors, 2 * 5 * kTile * 2 / 32 * 4 / 3);
}

// Of a matrix whose columns are rows of an image: neighbours are found along its other axis.
TEST(PipelinedElements, OfGathers) {
  const Launched run = launched(R"(program f(x: float16[8, 10, 66], w: float16[72, 64], c: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 24]
    shared b_tile: float16[24, 64]
    fragment s: float32[64, 64]
    fill s = 0.0
    pipelined k in 3 stages 2 {
      parallel i, j in 64, 24 {
        let at: int32 = k * 24 + j
        a_tile[i, j] = select(at < 72, x[at // 9, at // 3 % 3, i + at % 3], float16(0))
      }
      copy w[k * 24 : +24, 0 : +64] -> b_tile
      gemm s += a_tile @ b_tile
    }
    copy s -> c
  }
})");
  const int64_t of_w = 72 * 64 * 2 / 32;
  EXPECT_LE(run.counters.global_reads.global_sectors, of_w + 64 * 72 * 2 / 32 * 2);
}

// Of an image by channels: pieces of 8 stay within a point, though tiles of 32 do not, and a mask that ends the sum
// finds a piece alike.
TEST(PipelinedElements, OfGathersWhoseSumEndsWithinATile) {
  const Launched run = launched(R"(program f(x: float16[10, 66, 24], w: float16[216, 64], c: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float16[64, 32]
    shared b_tile: float16[32, 64]
    fragment s: float32[64, 64]
    fill s = 0.0
    pipelined k in 7 stages 2 {
      parallel i, j in 64, 32 {
        let at: int32 = k * 32 + j
        let inside: bool = i + at // 24 % 3 >= 1 and at < 216
        a_tile[i, j] = select(inside, x[at // 72, i + at // 24 % 3 - 1, at % 24], float16(0))
      }
      copy w[k * 32 : +32, 0 : +64] -> b_tile
      gemm s += a_tile @ b_tile
    }
    copy s -> c
  }
})");
  EXPECT_THAT(run.explanation, ::testing::HasSubstr("copy x -> a_tile: cp.async of 16 bytes"));
  EXPECT_EQ(run.counters.async_copies, 2 * 7 * kTile * 2 / 16 / 32);
}

}  // namespace
}  // namespace tilepilot::testing
