// Blocks of the grid whose work differs: each is named once, those with most work are done first.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "compiler/runtime/arguments.h"
#include "compiler/targets/cuda/uneven_blocks.h"
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
  const auto axes = [](const std::string& text) { return targets::cuda::axes_of_work(parse(text).kernels[0]); };
  EXPECT_THAT(axes(product("4")), IsEmpty());
  EXPECT_THAT(axes(product("by + 1")), ElementsAre(1));
  EXPECT_THAT(axes(product("n", "let n: int32 = bx % 2 + by")), ElementsAre(0, 1));
  EXPECT_THAT(axes(product("n", "let n: int32 = many[bx]")), IsEmpty());
}

// Blocks of a cluster stay together, and are those that the program has there.
TEST(UnevenBlocks, StayForOthersInClusters) {
  for (const std::string extent : {"by + 1", "bx % 3 + by", "bx + 1"}) {
    EmulatedBatch batch(targets::cuda::Architecture::sm_90a);
    for (const std::string cluster : {" cluster 2, 1", " cluster 1, 3", " cluster 4, 1", " cluster 2, 3"}) {
      const auto added = batch.add(parse(product(extent, "", cluster)));
      ASSERT_TRUE(added.ok()) << added.error().message;
      EXPECT_THAT(batch.source(*added), AllOf(HasSubstr("turn % 2 == 1 ? blocks - 1 - "), HasSubstr("cluster_b")));
    }
    batch.compile();
    if (HasFatalFailure()) return;
    for (size_t k = 0; k < batch.size(); ++k) expect_agreement(batch, k, parse(product(extent)), extent);
  }
}

// All blocks of some grid, in the order of their numbers.
std::vector<std::vector<int64_t>> named(const std::vector<int64_t>& grid, const std::vector<size_t>& axes) {
  ir::Kernel kernel;
  kernel.body = ir::make_stmt(ir::Block{}, {});
  int64_t all = 1;
  for (const int64_t extent : grid) {
    kernel.block_vars.push_back(ir::make_var("b", ir::kInt32));
    kernel.grid.push_back(ir::int_imm(extent));
    all *= extent;
  }
  const ir::Var number = ir::make_var("number", ir::kInt32);
  const auto lets = targets::cuda::name_by_work(kernel, axes, ir::var_ref(number));
  std::vector<std::vector<int64_t>> names;
  for (int64_t at = 0; at < all; ++at) {
    ir::VarRanges values{{number.get(), {at, at}}};
    for (const ir::Stmt& stmt : lets) {
      const auto& let = std::get<ir::Let>(stmt->node);
      const int64_t value = runtime::evaluate(let.value, values);
      values[let.var.get()] = {value, value};
    }
    std::vector<int64_t>& name = names.emplace_back();
    for (const ir::Var& var : kernel.block_vars) name.push_back(values.at(var.get()).lo);
  }
  return names;
}

TEST(UnevenBlocks, EachBlockIsNamedOnce) {
  const std::vector<std::pair<std::vector<int64_t>, std::vector<size_t>>> all{
      {{5}, {0}},     {{4, 3}, {0}},    {{4, 3}, {1}},        {{4, 3}, {0, 1}},  {{32, 40}, {0}},  {{7, 64}, {0}},
      {{33, 5}, {1}}, {{3, 5, 7}, {1}}, {{3, 10, 7}, {1, 2}}, {{2, 16, 5}, {0}}, {{3, 11, 9}, {0}}};
  for (const auto& [grid, axes] : all) {
    const auto names = named(grid, axes);
    std::set<std::vector<int64_t>> once;
    for (const auto& name : names) {
      for (size_t axis = 0; axis < grid.size(); ++axis) {
        EXPECT_GE(name[axis], 0);
        EXPECT_LT(name[axis], grid[axis]);
      }
      EXPECT_TRUE(once.insert(name).second);
    }
  }
}

TEST(UnevenBlocks, ThoseWithMostWorkComeLast) {
  const auto names = named({4, 3}, {1});
  for (size_t at = 1; at < names.size(); ++at) EXPECT_LE(names[at - 1][1], names[at][1]);
  // Of many that are alike, some at a time.
  const auto many = named({64, 3}, {1});
  for (size_t at = 1; at < 96; ++at) EXPECT_LE(many[at - 1][1], many[at][1]);
  EXPECT_THAT(many[96], ElementsAre(32, 0));
}

TEST(UnevenBlocks, StayForOthers) {
  const std::string source = expect_interpreted(product("by + 1"));
  EXPECT_THAT(source, HasSubstr("turn % 2 == 1 ? blocks - 1 - "));
  // What is read from memory may grow or shrink: the machine hands such blocks out.
  const std::string unknown = expect_interpreted(product("n", "let n: int32 = many[bx] % 4"));
  EXPECT_THAT(unknown, AllOf(Not(HasSubstr("turn % 2")), HasSubstr("set_registers_up")));
}

}  // namespace
}  // namespace tilepilot::testing
