// The order of a grid's blocks: each block once, neighbours in bands, those with most work last.
#include "compiler/targets/gpu/schedule/rasterisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/runtime/arguments.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::gemm_rasterisation;
using targets::gpu::Rasterisation;
using targets::gpu::rasterisation_by_work;
using ::testing::ElementsAre;

ir::Kernel with_grid(const std::string& columns, const std::string& rows) {
  return parse("program f<m: int32>(x: float32[m]) {\n  kernel bx, by in " + columns + ", " + rows +
               " threads 32 {\n    sync\n  }\n}\n")
      .kernels[0];
}

// What the block variables are, once these have values.
std::vector<int64_t> values_of(const std::vector<ir::Stmt>& lets, const ir::Kernel& kernel, ir::VarRanges values) {
  for (const ir::Stmt& stmt : lets) {
    const auto& let = std::get<ir::Let>(stmt->node);
    const int64_t value = runtime::evaluate(let.value, values);
    values[let.var.get()] = {value, value};
  }
  std::vector<int64_t> name;
  for (const ir::Var& var : kernel.block_vars) name.push_back(values.at(var.get()).lo);
  return name;
}

// All blocks of some grid, in the order of their numbers.
std::vector<std::vector<int64_t>> named(const std::vector<int64_t>& grid, const Rasterisation& order) {
  ir::Kernel kernel;
  kernel.body = ir::make_stmt(ir::Block{}, {});
  int64_t all = 1;
  for (const int64_t extent : grid) {
    kernel.block_vars.push_back(ir::make_var("b", ir::kInt32));
    kernel.grid.push_back(ir::int_imm(extent));
    all *= extent;
  }
  const ir::Var number = ir::make_var("number", ir::kInt32);
  const auto lets = name_blocks(kernel, order, ir::var_ref(number));
  std::vector<std::vector<int64_t>> names;
  for (int64_t at = 0; at < all; ++at) names.push_back(values_of(lets, kernel, {{number.get(), {at, at}}}));
  return names;
}

TEST(Rasterisation, NamesEachBlockOnce) {
  using Grid = std::vector<int64_t>;
  std::vector<std::pair<Grid, Rasterisation>> all{{{5}, {}}, {{4, 3}, {}}, {{3, 5, 7}, {}}};
  for (const auto& [grid, axes] : std::vector<std::pair<Grid, std::vector<size_t>>>{{{5}, {0}},
                                                                                    {{4, 3}, {0}},
                                                                                    {{4, 3}, {1}},
                                                                                    {{4, 3}, {0, 1}},
                                                                                    {{32, 40}, {0}},
                                                                                    {{7, 64}, {0}},
                                                                                    {{33, 5}, {1}},
                                                                                    {{3, 5, 7}, {1}},
                                                                                    {{3, 10, 7}, {1, 2}},
                                                                                    {{2, 16, 5}, {0}},
                                                                                    {{3, 11, 9}, {0}}})
    all.emplace_back(grid, rasterisation_by_work(axes, 32));
  for (const Grid& grid : std::vector<Grid>{{1, 1}, {5, 37}, {16, 16}, {3, 32}, {20, 7}})
    all.emplace_back(grid, gemm_rasterisation());
  for (const auto& [grid, order] : all) {
    std::set<std::vector<int64_t>> once;
    for (const auto& name : named(grid, order)) {
      for (size_t axis = 0; axis < grid.size(); ++axis) {
        EXPECT_GE(name[axis], 0);
        EXPECT_LT(name[axis], grid[axis]);
      }
      EXPECT_TRUE(once.insert(name).second);
    }
  }
}

TEST(Rasterisation, NeighboursOfProductsAreInBandsOfRows) {
  for (const auto& [columns, rows] : std::vector<std::pair<int64_t, int64_t>>{{5, 37}, {16, 16}, {3, 32}, {20, 7}}) {
    const auto names = named({columns, rows}, gemm_rasterisation());
    std::set<int64_t> first_rows;
    for (size_t k = 0; k < 16; ++k) first_rows.insert(names[k][1]);
    EXPECT_EQ(int64_t(first_rows.size()), std::min<int64_t>(rows, 16));
  }
}

// Clusters in their order, in each of them all its blocks.
TEST(Rasterisation, BlocksOfAClusterFollowEachOther) {
  ir::Kernel kernel = with_grid("6", "8");
  kernel.cluster = {2, 4};
  const ir::Var number = ir::make_var("number", ir::kInt32), rank = ir::make_var("rank", ir::kInt32);
  const auto lets = name_blocks_of_cluster(kernel, Rasterisation{}, ir::var_ref(number), ir::var_ref(rank));
  std::set<std::vector<int64_t>> once;
  for (int64_t cluster = 0; cluster < 6; ++cluster)
    for (int64_t block = 0; block < 8; ++block) {
      const auto name = values_of(lets, kernel, {{number.get(), {cluster, cluster}}, {rank.get(), {block, block}}});
      EXPECT_THAT(name, ElementsAre(cluster % 3 * 2 + block % 2, cluster / 3 * 4 + block / 2));
      EXPECT_TRUE(once.insert(name).second);
    }
}

TEST(Rasterisation, ThoseWithMostWorkComeLast) {
  const auto names = named({4, 3}, rasterisation_by_work({1}, 32));
  for (size_t at = 1; at < names.size(); ++at) EXPECT_LE(names[at - 1][1], names[at][1]);
  // Of many that are alike, some at a time.
  const auto many = named({64, 3}, rasterisation_by_work({1}, 32));
  for (size_t at = 1; at < 96; ++at) EXPECT_LE(many[at - 1][1], many[at][1]);
  EXPECT_THAT(many[96], ElementsAre(32, 0));
}

TEST(Rasterisation, OfProductsIsForGridsOfTwoAxesThatAreNotSmall) {
  std::vector<targets::gpu::Decision> decisions;
  const auto changed = [&](const ir::Kernel& kernel) {
    return targets::gpu::rasterised(kernel, true, decisions).block_vars != kernel.block_vars;
  };
  EXPECT_TRUE(changed(with_grid("16", "40")));
  EXPECT_TRUE(changed(with_grid("m", "m")));
  EXPECT_FALSE(changed(with_grid("8", "40")));
  EXPECT_FALSE(changed(with_grid("40", "8")));
  ir::Kernel waiting = with_grid("m", "m");
  waiting.body = ir::make_stmt(ir::While{ir::bool_imm(false), waiting.body}, {});
  EXPECT_FALSE(changed(waiting));
  EXPECT_THAT(decisions, ::testing::IsEmpty());
}

// `T.use_swizzle`: whatever the kernel does, and however small its grid is.
TEST(Rasterisation, IsInThePanelsThatAProgramAsksFor) {
  const auto names = named({5, 7}, targets::gpu::rasterisation_by_panels({3, false}));
  EXPECT_THAT(std::vector(names.begin(), names.begin() + 4),
              ElementsAre(ElementsAre(0, 0), ElementsAre(0, 1), ElementsAre(0, 2), ElementsAre(1, 0)));
  EXPECT_THAT(names[15], ElementsAre(0, 3));
  const auto columns = named({5, 7}, targets::gpu::rasterisation_by_panels({2, true}));
  EXPECT_THAT(std::vector(columns.begin(), columns.begin() + 3),
              ElementsAre(ElementsAre(0, 0), ElementsAre(1, 0), ElementsAre(0, 1)));

  std::vector<targets::gpu::Decision> decisions;
  ir::Kernel kernel = with_grid("5", "7");
  EXPECT_EQ(targets::gpu::rasterised(kernel, false, decisions).block_vars, kernel.block_vars);
  kernel.order.panel = 3;
  EXPECT_NE(targets::gpu::rasterised(kernel, false, decisions).block_vars, kernel.block_vars);
  kernel.cluster = {1, 1};
  EXPECT_EQ(targets::gpu::rasterised(kernel, false, decisions).block_vars, kernel.block_vars);
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].chosen, "panels of 3 rows");
  EXPECT_THAT(decisions[1].obstacles,
              ElementsAre("not panels of 3 rows: the blocks of a cluster stand beside each other"));
}

// The values are right in every order, with a producer warpgroup and without one.
TEST(Rasterisation, OfPanelsComputesTheSame) {
  for (const char* panels : {"panels 2", "panels 3 of_columns"})
    for (const char* threads : {"128", "256"}) {
      const std::string text = R"(program product(a: float16[384, 64], b: float16[64, 256], o: float32[384, 256]) {
  kernel bx, by in 4, 3 threads )" +
                               std::string(threads) + " " + panels + R"( {
    shared a_tile: float16[128, 16]
    shared b_tile: float16[16, 64]
    fragment sums: float32[128, 64]
    fill sums = 0.0
    pipelined k in 4 stages 2 {
      copy a[by * 128 : +128, k * 16 : +16] -> a_tile
      copy b[k * 16 : +16, bx * 64 : +64] -> b_tile
      gemm sums += a_tile @ b_tile
    }
    copy sums -> o[by * 128 : +128, bx * 64 : +64]
  }
})";
      EXPECT_THAT(expect_interpreted(text), ::testing::HasSubstr("band"));
    }
}

}  // namespace
}  // namespace tilepilot::testing
