// The order of a grid's blocks: each block once, neighbours in bands.
#include "compiler/targets/cuda/block_bands.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/bounds.h"
#include "compiler/ir/visit.h"
#include "tests/cpu/kernel_fixture.h"

namespace tilepilot::testing {
namespace {

ir::Kernel with_grid(const std::string& columns, const std::string& rows) {
  return parse("program f<m: int32>(x: float32[m]) {\n  kernel bx, by in " + columns + ", " + rows +
               " threads 32 {\n    sync\n  }\n}\n")
      .kernels[0];
}

// What the two block variables are for the block of this number.
std::pair<int64_t, int64_t> place(const std::vector<ir::Stmt>& lets, ir::VarRanges values) {
  for (const ir::Stmt& stmt : lets) {
    const auto& let = *ir::as<ir::Let>(stmt);
    values[let.var.get()] = ir::bounds(let.value, values);
  }
  const auto value = [&](size_t from_last) {
    return values.at(ir::as<ir::Let>(lets[lets.size() - from_last])->var.get()).lo;
  };
  return {value(2), value(1)};
}

TEST(BlockBands, NameEachBlockOnce) {
  for (const auto& [columns, rows] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 37}, {16, 16}, {3, 32}, {20, 7}}) {
    const ir::Kernel kernel = with_grid(std::to_string(columns), std::to_string(rows));
    const ir::Var number = ir::make_var("number", ir::kInt32);
    const std::vector<ir::Stmt> lets = targets::cuda::name_in_bands(kernel, ir::var_ref(number));
    std::set<std::pair<int64_t, int64_t>> seen;
    std::set<int64_t> first_rows;
    for (int64_t k = 0; k < columns * rows; ++k) {
      const auto [column, row] = place(lets, {{number.get(), {k, k}}});
      EXPECT_TRUE(column >= 0 && column < columns && row >= 0 && row < rows) << k;
      EXPECT_TRUE(seen.emplace(column, row).second) << column << " " << row;
      if (k < 16) first_rows.insert(row);
    }
    EXPECT_EQ(int64_t(first_rows.size()), std::min<int64_t>(rows, 16));
  }
}

TEST(BlockBands, AreForGridsOfTwoAxesThatAreNotSmall) {
  const auto changes = [](const std::string& columns, const std::string& rows) {
    const ir::Kernel kernel = with_grid(columns, rows);
    return targets::cuda::in_bands(kernel).block_vars != kernel.block_vars;
  };
  EXPECT_TRUE(changes("16", "40"));
  EXPECT_TRUE(changes("m", "m"));
  EXPECT_FALSE(changes("8", "40"));
  EXPECT_FALSE(changes("40", "8"));
  ir::Kernel waiting = with_grid("m", "m");
  waiting.body = ir::make_stmt(ir::While{ir::bool_imm(false), waiting.body}, {});
  EXPECT_EQ(targets::cuda::in_bands(waiting).block_vars, waiting.block_vars);
}

}  // namespace
}  // namespace tilepilot::testing
