#include "eval/graph/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

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

// Of a graph with one output, the value `output`.
SumLengths sums_of(Graph graph, int output) {
  graph.outputs = {ValueRef{output}};
  return longest_sums(graph).at(0);
}

TEST(LongestSums, KnowsProductsConvolutionsAndReductions) {
  Graph graph;
  graph.values = {tensor({8, 300}),     tensor({16, 300}),    tensor({8, 16}),   tensor({4, 3, 5, 5}),
                  tensor({1, 3, 9, 9}), tensor({1, 4, 5, 5}), tensor({2, 1000}), tensor({2})};
  graph.nodes = {node("aten::linear", {0, 1}, 2)};
  EXPECT_EQ(sums_of(graph, 2).products, 300);
  EXPECT_EQ(sums_of(graph, 2).reductions, 1);
  graph.nodes = {node("aten::conv2d", {4, 3}, 5)};
  EXPECT_EQ(sums_of(graph, 5).products, 75);
  graph.nodes = {node("aten::sum", {6}, 7), node("aten::relu", {0}, 0)};
  EXPECT_EQ(sums_of(graph, 7).reductions, 1000);
  graph.nodes = {node("aten::relu", {0}, 0)};
  EXPECT_EQ(sums_of(graph, 0).reductions, 1);
}

// An output is not judged by the sums behind another one.
TEST(LongestSums, AreThoseBehindTheOutput) {
  Graph graph;
  graph.values = {tensor({2, 100000}), tensor({2}), tensor({2}), tensor({2, 100000})};
  graph.nodes = {node("aten::sum", {0}, 1), node("aten::sigmoid", {1}, 2), node("aten::exp", {0}, 3)};
  graph.outputs = {GraphList{{ValueRef{2}}, {ValueRef{3}}}};
  auto sums = longest_sums(graph);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].reductions, 100000);
  EXPECT_EQ(sums[1].reductions, 1);
}

TEST(LongestSums, CountNoTermsWhereElementsAreOnlyMoved) {
  Graph graph;
  graph.values = {tensor({1000, 64}), tensor({10}), tensor({10, 64})};
  for (auto op :
       {"aten::index_select", "aten::gather", "aten::slice", "aten::embedding", "aten::select", "aten::amax"}) {
    graph.nodes = {node(op, {0, 1}, 2)};
    EXPECT_EQ(sums_of(graph, 2).reductions, 1) << op;
  }
}

TEST(AllowedError, IsAFewRoundingsForElementwiseModels) {
  ToleranceBasis basis{machine_epsilon("float32")};
  EXPECT_GT(allowed_error(basis).max, 3 * 0x1p-23);
  EXPECT_LT(allowed_error(basis).max, 10 * 0x1p-23);
}

// What fp16 or bf16 arithmetic inside loses is far outside, even for long sums.
TEST(AllowedError, TellsLowPrecisionFromFloat32) {
  for (int64_t terms : {1, 100, 10'000}) {
    ToleranceBasis basis{machine_epsilon("float32"), {terms, 1}, 1, {3e-7, 1e-7}, {2e-7, 1e-7}};
    EXPECT_LT(allowed_error(basis).max, machine_epsilon("float16") / 8) << terms;
  }
}

TEST(AllowedError, GrowsWithEagersOwnErrorAndWithTheConditionOfTheTask) {
  ToleranceBasis basis{machine_epsilon("float32"), {}, 1000, {1e-4, 1e-5, 1e-4, 1e-5}, {}};
  EXPECT_DOUBLE_EQ(allowed_error(basis).max, 4e-4);
  EXPECT_DOUBLE_EQ(allowed_error(basis).rms, 4e-5);
  basis.sensitivity = {1e-2, 1e-3};
  EXPECT_DOUBLE_EQ(allowed_error(basis).max, 4e-2);
}

// Their errors raise the largest and the mean ones; most rows must still be as good as eager's.
TEST(AllowedError, OfAFewHardRowsIsNotThatOfAllRows) {
  const ToleranceBasis even{machine_epsilon("float32"), {}, 1000, {1e-2, 1e-3, 1e-2, 1e-3}, {}};
  const ToleranceBasis hard{machine_epsilon("float32"), {}, 1000, {1e-2, 1e-3, 1e-2, 1e-7}, {}};
  EXPECT_DOUBLE_EQ(allowed_error(even).rms, 4e-3);
  EXPECT_DOUBLE_EQ(allowed_error(hard).rms, 4e-3);
  EXPECT_DOUBLE_EQ(allowed_error(even).usual, 16e-3);
  EXPECT_LT(allowed_error(hard).usual, 1e-5);
}

TEST(AllowedError, OfHalfPrecisionDoesNotGrowWithItsOwnSums) {
  ToleranceBasis basis{machine_epsilon("float16"), {1, 1'000'000}};
  EXPECT_LT(allowed_error(basis).max, 3 * machine_epsilon("float16"));
}

// The mean of 33 million numbers in [0, 1) taken from a fifth of them is off by about 1e-4.
TEST(AllowedError, OfALongMeanIsLessThanASampleOfItErrs) {
  ToleranceBasis basis{machine_epsilon("float32"), {1, 33'000'000}, 1, {1e-7, 1e-7}, {1e-9, 1e-9}};
  EXPECT_LT(allowed_error(basis).max, 2e-5);
  EXPECT_LT(allowed_error(basis).rms, 2e-5);
}

// One float32 after the other: what a kernel that sums with one thread does.
TEST(AllowedError, CoversSerialSumsOfModerateLength) {
  for (int64_t terms : {64, 1000, 4096, 16384}) {
    float sum = 0;
    double truth = 0;
    uint32_t state = 1;
    for (int64_t i = 0; i < terms; ++i) {
      state = state * 1664525 + 1013904223;
      const float term = static_cast<float>(state >> 8) * 0x1p-24f;
      sum += term;
      truth += term;
    }
    ToleranceBasis basis{machine_epsilon("float32"), {1, terms}};
    EXPECT_LT(std::abs(sum - truth) / (2 * truth), allowed_error(basis).rms) << terms;
  }
}

// One in a hundred of everything is no rounding: those cancel.
TEST(AllowedError, OfHalfPrecisionHoldsWhatAllElementsHaveInCommonAgainstTheMeanOfRoundings) {
  ToleranceBasis basis{machine_epsilon("bfloat16"), {}, 16384, {}, {}};
  basis.eager.rms = 0.0015;
  basis.eager.bias = 1e-4;
  EXPECT_LT(allowed_error(basis).bias, 0.005);
  EXPECT_GT(allowed_error(basis).bias, 0x1p-8);
  EXPECT_LT(allowed_error(basis).rms, 0.0045);
  basis.numel = 1;
  EXPECT_GT(allowed_error(basis).bias, 0x1p-7);
  basis.epsilon = machine_epsilon("float32");
  EXPECT_EQ(allowed_error(basis).bias, INFINITY);
}

TEST(AllowedError, IsFiniteWhateverTheTruthIsMovedBy) {
  ToleranceBasis basis{machine_epsilon("float32"), {}, 1000, {}, {INFINITY, INFINITY, NAN, INFINITY, NAN, 0, INFINITY}};
  const ScaledError allowed = allowed_error(basis);
  EXPECT_LT(allowed.max, 1e-6);
  EXPECT_LT(allowed.rms, 1e-6);
  EXPECT_LT(allowed.local, 1e-5);
  EXPECT_LT(allowed.usual, 1e-5);
  EXPECT_LT(allowed.lost, 0.1);
}

TEST(Within, IsFalseWhereAnythingIsAllowed) {
  EXPECT_FALSE(within({1, 0}, {INFINITY, 1}));
  EXPECT_TRUE(within({1, 0}, {2, 1}));
}

TEST(Within, IsFalseForNotANumber) { EXPECT_FALSE(within({std::nan(""), 0}, {1, 1})); }

TEST(MachineEpsilon, OfIntegersIsZero) { EXPECT_EQ(machine_epsilon("int64"), 0); }

}  // namespace
}  // namespace tilepilot::eval
