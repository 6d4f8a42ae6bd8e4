// GEMMs by multiply-adds: of float32 as written, and of tiles that fit no tensor core.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// `a` and `b`: the tiles, in the order in which they lie.
Launched product(const std::string& a, const std::string& b, const std::string& gemm, int columns = 64) {
  return launched(fmt::format(R"(program f(a: {0}, b: {1}, c: float32[64, {3}]) {{
  kernel bx in 1 threads 128 {{
    shared a_tile: {0}
    shared b_tile: {1}
    fragment s: float32[64, {3}]
    copy a -> a_tile
    copy b -> b_tile
    fill s = 0.0
    gemm s += {2}
    copy s -> c
  }}
}})",
                              a, b, gemm, columns));
}

// Columns of B that are rows of its tile: threads read four steps of each at once, and neighbouring threads
// neighbouring rows, which have no bank conflict. Single elements of every fourth row took 16 times as long.
TEST(ThreadGemms, OfATransposedOperand) {
  for (const int k : {16, 32}) {
    SCOPED_TRACE(k);
    const Launched run =
        product(fmt::format("float32[64, {}]", k), fmt::format("float32[64, {}]", k), "a_tile @ b_tile.T");
    EXPECT_THAT(run.source, HasSubstr("copy_vector<16>(&b_tile_v"));
    // In four steps a warp reads four rows of B and eight of A, a quarter of the lanes at a time.
    const int64_t accesses = 4 * (k / 4) * (4 + 8);
    EXPECT_EQ(run.counters.shared_reads.instructions, accesses);
    EXPECT_LE(run.counters.shared_reads.shared_wavefronts, 4 * accesses);
  }
}

TEST(ThreadGemms, OfOtherForms) {
  EXPECT_THAT(product("float32[64, 20]", "float32[20, 64]", "a_tile @ b_tile").source,
              HasSubstr("copy_vector<16>(&a_tile_v"));
  EXPECT_THAT(product("float32[20, 64]", "float32[64, 20]", "a_tile.T @ b_tile.T").source,
              HasSubstr("copy_vector<16>(&b_tile_v"));
  product("float32[20, 64]", "float32[20, 64]", "a_tile.T @ b_tile");
  product("float16[64, 20]", "float16[64, 20]", "a_tile @ b_tile.T");
  // Columns that the threads do not share evenly.
  product("float32[64, 20]", "float32[60, 20]", "a_tile @ b_tile.T", 60);
  // No rows of whole vectors.
  EXPECT_THAT(product("float32[64, 18]", "float32[64, 18]", "a_tile @ b_tile.T").source,
              Not(HasSubstr("copy_vector<16>(&b_tile_v")));
}

}  // namespace
}  // namespace tilepilot::testing
