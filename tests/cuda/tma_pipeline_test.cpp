// Tiles that a block needs once: the threads that feed a loop ask for them, too, where nobody else writes them.
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// WRITTEN stands between the loop and what reads the tile.
constexpr const char* kShifted =
    R"(program shifted(a: float16[384, 64], b: float16[64, 256], c: float16[64, 64], o: float32[384, 256]) {
  kernel bx, by in 4, 3 threads 256 {
    shared a_tile: float16[128, 16]
    shared b_tile: float16[16, 64]
    shared c_tile: float16[64, 64]
    fragment sums: float32[128, 64]
    copy c -> c_tile
    fill sums = 0.0
    pipelined k in 4 stages 2 {
      copy a[by * 128 : +128, k * 16 : +16] -> a_tile
      copy b[k * 16 : +16, bx * 64 : +64] -> b_tile
      gemm sums += a_tile @ b_tile
    }
    WRITTEN
    parallel i, j in 128, 64 {
      sums[i, j] = sums[i, j] + float32(c_tile[j, i % 64])
    }
    copy sums -> o[by * 128 : +128, bx * 64 : +64]
  }
})";

TEST(FedTiles, AreAskedForByThreadsOfTheirOwn) {
  const std::string asked = "copy c -> c_tile: by TMA, issued by a producer warpgroup\n";
  const auto shifted = [](const std::string& written) {
    std::string text = kShifted;
    const std::string place = "WRITTEN";
    return text.replace(text.find(place), place.size(), written);
  };
  EXPECT_THAT(explained(shifted("")), HasSubstr(asked));
  expect_interpreted(shifted(""));
  // A tile that is written again stays with those who write it.
  const std::string again = shifted("fill c_tile[0 : 8, 0 : 64] = 0.0");
  EXPECT_THAT(explained(again), Not(HasSubstr(asked)));
  expect_interpreted(again);
}

}  // namespace
}  // namespace tilepilot::testing
