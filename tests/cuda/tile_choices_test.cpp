// Layouts of shared tiles that are chosen together with those of the loops that walk them.
#include <gmock/gmock.h>

#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;

// Rows of neither side are whole vectors: elements move one by one, along rows on both sides, and the tile's rows are
// padded so that a column is in all banks. Before, a warp stored to four rows, and waited for banks.
TEST(TileChoices, OfATileThatIsReadAcross) {
  const Launched run = launched(R"(program f(x: float32[63, 67], y: float32[67, 63]) {
  kernel bx in 1 threads 256 {
    shared t: float32[64, 64]
    copy x[0 : +64, bx : +64] -> t
    parallel i, j in 64, 64 {
      if j < 63 {
        y[i, j] = t[j, i]
      }
    }
  }
})");
  EXPECT_LE(run.counters.global_writes.global_sectors, 64 * 63 / 8 * 4 / 3);
  EXPECT_LE(run.wavefronts(), 2 * 64 * 2);
  EXPECT_THAT(run.explanation, HasSubstr("layout of tile t: "));
}

// What is read often decides, not what fills the tile.
TEST(TileChoices, OfATileThatIsReadOften) {
  const Launched run = launched(R"(program f(a: float32[32, 32], b: float32[32, 32], y: float32[32, 32]) {
  kernel bx in 1 threads 128 {
    shared a_tile: float32[32, 32]
    shared b_tile: float32[32, 32]
    fragment s: float32[32, 32]
    copy a -> a_tile
    copy b -> b_tile
    fill s = 0.0
    serial k in 32 {
      parallel i, j in 32, 32 {
        s[i, j] = max(s[i, j], a_tile[i, k] - b_tile[j, k])
      }
    }
    copy s -> y
  }
})");
  EXPECT_LE(run.wavefronts(), 32 * 2 * 32 * 5 / 4);
}

// A tile that tensor cores read stays as they want it.
TEST(TileChoices, AreNoneForOperands) {
  const Launched run = launched(R"(program f(x: float16[64, 64], w: float16[64, 64], y: float32[64, 64]) {
  kernel bx in 1 threads 128 {
    shared t: float16[64, 64]
    shared u: float16[64, 64]
    fragment s: float32[64, 64]
    copy w -> u
    parallel i, j in 64, 64 {
      t[i, j] = x[j, i]
    }
    fill s = 0.0
    gemm s += t @ u
    copy s -> y
  }
})");
  EXPECT_THAT(run.source, HasSubstr("ldmatrix"));
  EXPECT_THAT(run.explanation, ::testing::Not(HasSubstr("layout of tile")));
}

}  // namespace
}  // namespace tilepilot::testing
