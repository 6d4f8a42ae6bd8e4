// The order of a grid's blocks: each block once, neighbours in bands, those with most work last.
#include "compiler/targets/gpu/schedule/rasterisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/runtime/arguments.h"
#include "tests/cpu/kernel_fixture.h"

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
    all.emplace_back(grid, rasterisation_by_work(axes));
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
  const auto names = named({4, 3}, rasterisation_by_work({1}));
  for (size_t at = 1; at < names.size(); ++at) EXPECT_LE(names[at - 1][1], names[at][1]);
  // Of many that are alike, some at a time.
  const auto many = named({64, 3}, rasterisation_by_work({1}));
  for (size_t at = 1; at < 96; ++at) EXPECT_LE(many[at - 1][1], many[at][1]);
  EXPECT_THAT(many[96], ElementsAre(32, 0));
}

TEST(Rasterisation, OfProductsIsForGridsOfTwoAxesThatAreNotSmall) {
  const auto changes = [](const std::string& columns, const std::string& rows) {
    const ir::Kernel kernel = with_grid(columns, rows);
    return targets::gpu::rasterised_for_gemm(kernel).block_vars != kernel.block_vars;
  };
  EXPECT_TRUE(changes("16", "40"));
  EXPECT_TRUE(changes("m", "m"));
  EXPECT_FALSE(changes("8", "40"));
  EXPECT_FALSE(changes("40", "8"));
  ir::Kernel waiting = with_grid("m", "m");
  waiting.body = ir::make_stmt(ir::While{ir::bool_imm(false), waiting.body}, {});
  EXPECT_EQ(targets::gpu::rasterised_for_gemm(waiting).block_vars, waiting.block_vars);
}

}  // namespace
}  // namespace tilepilot::testing
