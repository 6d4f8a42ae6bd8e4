#include "eval/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilepilot::eval {
namespace {

GraphValue tensor(std::vector<int64_t> shape) {
  return {GraphValue::Kind::node, "t", true, "float32", std::move(shape), {}};
}

GraphNode node(const std::string& op, const std::vector<int>& operands, int output) {
  GraphNode result{op, "", {}, {}, {output}, "", 0};
  for (int id : operands) result.args.push_back({ValueRef{id}});
  return result;
}

TEST(LongestSum, KnowsProductsConvolutionsAndReductions) {
  Graph graph;
  graph.values = {tensor({8, 300}),     tensor({16, 300}),    tensor({8, 16}),   tensor({4, 3, 5, 5}),
                  tensor({1, 3, 9, 9}), tensor({1, 4, 5, 5}), tensor({2, 1000}), tensor({2})};
  graph.nodes = {node("aten::linear", {0, 1}, 2)};
  EXPECT_EQ(longest_sum(graph), 300);
  graph.nodes = {node("aten::conv2d", {4, 3}, 5)};
  EXPECT_EQ(longest_sum(graph), 75);
  graph.nodes = {node("aten::sum", {6}, 7), node("aten::relu", {0}, 0)};
  EXPECT_EQ(longest_sum(graph), 1000);
  graph.nodes = {node("aten::relu", {0}, 0)};
  EXPECT_EQ(longest_sum(graph), 1);
}

TEST(AllowedError, IsAFewRoundingsForElementwiseModels) {
  ToleranceBasis basis{machine_epsilon("float32"), 1, {}, {}};
  EXPECT_GT(allowed_error(basis).max, 3 * 0x1p-23);
  EXPECT_LT(allowed_error(basis).max, 10 * 0x1p-23);
}

// What fp16 or bf16 arithmetic inside loses is far outside, even for long sums.
TEST(AllowedError, TellsLowPrecisionFromFloat32) {
  for (int64_t terms : {1, 100, 10'000}) {
    ToleranceBasis basis{machine_epsilon("float32"), terms, {3e-7, 1e-7}, {2e-7, 1e-7}};
    EXPECT_LT(allowed_error(basis).max, machine_epsilon("float16") / 8) << terms;
  }
}

TEST(AllowedError, GrowsWithEagersOwnErrorAndWithTheConditionOfTheTask) {
  ToleranceBasis basis{machine_epsilon("float32"), 1, {1e-4, 1e-5}, {}};
  EXPECT_DOUBLE_EQ(allowed_error(basis).max, 4e-4);
  EXPECT_DOUBLE_EQ(allowed_error(basis).rms, 4e-5);
  basis.sensitivity = {1e-2, 1e-3};
  EXPECT_DOUBLE_EQ(allowed_error(basis).max, 4e-2);
}

TEST(AllowedError, OfHalfPrecisionDoesNotGrowWithItsOwnSums) {
  ToleranceBasis basis{machine_epsilon("float16"), 1'000'000, {}, {}};
  EXPECT_LT(allowed_error(basis).max, 3 * machine_epsilon("float16"));
}

TEST(Within, IsFalseForNotANumber) { EXPECT_FALSE(within({std::nan(""), 0}, {1, 1})); }

TEST(MachineEpsilon, OfIntegersIsZero) { EXPECT_EQ(machine_epsilon("int64"), 0); }

}  // namespace
}  // namespace tilepilot::eval
