// Blocks of the grid whose work differs: which axes tell, and what becomes of such kernels.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/targets/gpu/schedule/load_balance.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A product over as many tiles as EXTENT says.
std::string product(const std::string& extent, const std::string& before = "", const std::string& cluster = "") {
  return fmt::format(
      R"(program product(a: float16[384, 64], b: float16[64, 256], many: int32[4], o: float32[384, 256]) {{
  kernel bx, by in 4, 3 threads 256{} {{
    shared a_tile: float16[128, 16]
    shared b_tile: float16[16, 64]
    fragment sums: float32[128, 64]
    fill sums = 0.0
    {}
    pipelined k in {} stages 2 {{
      copy a[by * 128 : +128, k * 16 : +16] -> a_tile
      copy b[k * 16 : +16, bx * 64 : +64] -> b_tile
      gemm sums += a_tile @ b_tile
    }}
    copy sums -> o[by * 128 : +128, bx * 64 : +64]
  }}
}})",
      cluster, before, extent);
}

TEST(UnevenBlocks, AxesOfWorkAreFound) {
  const auto axes = [](const std::string& text) { return targets::gpu::axes_of_work(parse(text).kernels[0]); };
  EXPECT_THAT(axes(product("4")), IsEmpty());
  EXPECT_THAT(axes(product("by + 1")), ElementsAre(1));
  EXPECT_THAT(axes(product("n", "let n: int32 = bx % 2 + by")), ElementsAre(0, 1));
  EXPECT_THAT(axes(product("n", "let n: int32 = many[bx]")), IsEmpty());
}

// Heads whose tensors the L2 of an H200 (50 MB) holds together: of 1 MiB each for keys and values; twice for what is
// written.
TEST(UnevenBlocks, BandsFitTheCache) {
  const auto band = [](int heads, int rows, const std::string& in_loop = "") {
    const std::string text = fmt::format(
        R"(program heads(k: float16[{0}, {1}, 128], v: float16[{0}, {1}, 128], o: float32[{0}, {1}, 128]) {{
  kernel bx, by in {2}, {0} threads 256 {{
    shared k_tile: float16[128, 128]
    shared v_tile: float16[128, 128]
    pipelined t in bx + 1 stages 2 {{
      copy k[by, t * 128 : +128, 0 : 128] -> k_tile
      copy v[by, t * 128 : +128, 0 : 128] -> v_tile
      {3}
    }}
    copy k_tile -> o[by, bx * 128 : +128, 0 : 128]
  }}
}})",
        heads, rows, rows / 128, in_loop);
    return targets::gpu::band_of_equal_work(parse(text).kernels[0], {0},
                                            targets::gpu::machine_of(targets::gpu::Architecture::sm_90a));
  };
  EXPECT_EQ(band(8, 4096), 8);
  EXPECT_EQ(band(32, 4096), 11);  // 2 MiB each: 12 fit into one half, which are three bands of at most 11
  EXPECT_EQ(band(128, 4096), 12);
  EXPECT_EQ(band(32, 16384), 3);
  EXPECT_EQ(band(3, 1 << 18), 1);
  EXPECT_EQ(band(32, 4096, "copy k_tile -> o[by, t * 128 : +128, 0 : 128]"), 4);  // 2 + 2 * 2 MiB
}

TEST(UnevenBlocks, MayHaveLessFurtherOn) {
  const auto shrinks = [](const std::string& extent, const std::string& before = "") {
    return targets::gpu::work_shrinks(parse(product(extent, before)).kernels[0], {1});
  };
  EXPECT_FALSE(shrinks("by + 1"));
  EXPECT_TRUE(shrinks("4 - by"));
  EXPECT_TRUE(shrinks("(64 - n) // 2", "let n: int32 = by * 2"));
  EXPECT_FALSE(shrinks("4"));
}

// Blocks of a cluster stay together, and are those that the program has there.
TEST(UnevenBlocks, StayForOthersInClusters) {
  EmulatedBatch batch(targets::gpu::Architecture::sm_90a);
  const std::vector<std::pair<std::string, std::string>> all{{"by + 1", " cluster 2, 1"},
                                                             {"by + 1", " cluster 2, 3"},
                                                             {"bx % 3 + by", " cluster 1, 3"},
                                                             {"bx", " cluster 4, 1"}};
  for (const auto& [extent, cluster] : all) {
    const auto added = batch.add(parse(product(extent, "", cluster)));
    ASSERT_TRUE(added.ok()) << added.error().message;
    EXPECT_THAT(batch.source(*added), AllOf(Not(HasSubstr("iteration")), HasSubstr(" - block_2 / ")));
  }
  batch.compile();
  if (HasFatalFailure()) return;
  for (size_t k = 0; k < all.size(); ++k) expect_agreement(batch, k, parse(product(all[k].first)), all[k].second);
}

TEST(UnevenBlocks, StayForOthers) {
  const std::string source = expect_interpreted(product("by + 1"));
  EXPECT_THAT(source, AllOf(HasSubstr("tile = 11 - block"), Not(HasSubstr("iteration"))));
  // The first ones have most.
  EXPECT_THAT(expect_interpreted(product("n", "let n: int32 = 4 - by")), Not(HasSubstr(" - block")));
  expect_interpreted(product("by"), {targets::gpu::Architecture::sm_90a});  // some have nothing to do
  // What is read from memory may grow or shrink: the machine hands such blocks out.
  const std::string unknown = expect_interpreted(product("n", "let n: int32 = many[bx] % 4"));
  EXPECT_THAT(unknown, AllOf(Not(HasSubstr("iteration")), HasSubstr("set_registers_up")));
}

}  // namespace
}  // namespace tilepilot::testing
