// Which graphs can be run in slices, and along which axis.
#include "eval/graph/graph_slices.h"

#include <gmock/gmock.h>

#include "eval/graph/graph_cost.h"
#include "eval/graph/preflight.h"
#include "tests/eval/drawn_graph.h"

namespace tilepilot::eval {
namespace {

using testing::axes;
using testing::Drawn;
using testing::integer;
using testing::number;
using testing::ref;
using testing::refs;

std::optional<GraphSlices> slices_of(const Drawn& drawn) { return find_slices(GraphUses(drawn.graph)); }

// The axis of a value that is cut; -1: none, -2: there is no plan.
int axis_of(const Drawn& drawn, int id) {
  auto slices = slices_of(drawn);
  if (!slices) return -2;
  auto& cut = slices->cuts[static_cast<size_t>(id)];
  return cut ? cut->axis : -1;
}
int axis_of_input(const Drawn& drawn) { return axis_of(drawn, drawn.graph.inputs[0]); }

constexpr int kNoPlan = -2;

TEST(GraphSlices, CutTheFirstAxisThatIsNotCombined) {
  for (int64_t combined : {0, 1, -1}) {
    Drawn drawn;
    int x = drawn.input({8, 6, 4});
    drawn.returns(drawn.node("softmax.int", {ref(x), integer(combined)}, {8, 6, 4}));
    EXPECT_EQ(axis_of_input(drawn), combined == 0 ? 1 : 0) << combined;
  }
}

TEST(GraphSlices, CutBatchesOfProductsAndKeepWeightsWhole) {
  Drawn drawn;
  int x = drawn.input({8, 32}), w = drawn.weight({16, 32}), b = drawn.weight({16});
  int y = drawn.node("linear", {ref(x), ref(w), ref(b)}, {8, 16});
  drawn.returns(drawn.node("relu_", {ref(y)}, {8, 16}));
  EXPECT_EQ(axis_of_input(drawn), 0);
  EXPECT_EQ(axis_of(drawn, w), -1);
  EXPECT_EQ(axis_of(drawn, b), -1);
}

TEST(GraphSlices, CutTheColumnsOfTheLargerMatrix) {
  Drawn drawn;
  int a = drawn.input({4, 8}), b = drawn.input({8, 100});
  int y = drawn.node("matmul", {ref(a), ref(b)}, {4, 100});
  drawn.returns(y);
  EXPECT_EQ(axis_of(drawn, a), -1);
  EXPECT_EQ(axis_of(drawn, b), 1);
  EXPECT_EQ(axis_of(drawn, y), 1);
}

TEST(GraphSlices, CutWhatACutTensorIsCombinedWith) {
  Drawn drawn;
  int x = drawn.input({8, 6, 4}), mask = drawn.input({8, 1, 4}), scale = drawn.weight({4});
  int y = drawn.node("mul.Tensor", {ref(x), ref(mask)}, {8, 6, 4});
  drawn.returns(drawn.node("mul.Tensor", {ref(y), ref(scale)}, {8, 6, 4}));
  EXPECT_EQ(axis_of(drawn, x), 0);
  EXPECT_EQ(axis_of(drawn, mask), 0);
  EXPECT_EQ(axis_of(drawn, scale), -1);
}

TEST(GraphSlices, RewriteSizesThatMentionTheAxis) {
  Drawn drawn;
  int x = drawn.input({6, 4, 10});
  int rows = drawn.node("view", {ref(x), axes({24, 10})}, {24, 10});
  int state = drawn.node("zeros", {axes({24, 10})}, {24, 10});
  int sum = drawn.node("add.Tensor", {ref(rows), ref(state)}, {24, 10});
  drawn.returns(drawn.node("reshape", {ref(sum), axes({6, -1})}, {6, 40}));
  auto slices = slices_of(drawn);
  ASSERT_TRUE(slices);
  EXPECT_EQ(slices->cuts[static_cast<size_t>(rows)], (AxisCut{0, 4}));
  const Graph part = slice_graph(drawn.graph, *slices, 2);
  EXPECT_EQ(integers_of(&part.nodes[0].args[1]), (std::vector<int64_t>{8, 10}));
  EXPECT_EQ(integers_of(&part.nodes[1].args[0]), (std::vector<int64_t>{8, 10}));
  EXPECT_EQ(integers_of(&part.nodes[3].args[1]), (std::vector<int64_t>{2, -1}));
  EXPECT_EQ(part.values[static_cast<size_t>(sum)].shape, (std::vector<int64_t>{8, 10}));
}

TEST(GraphSlices, FollowAxesThatMove) {
  Drawn drawn;
  int x = drawn.input({8, 6, 4});
  int y = drawn.node("permute", {ref(x), axes({2, 0, 1})}, {4, 8, 6});
  int z = drawn.node("unsqueeze", {ref(y), integer(0)}, {1, 4, 8, 6});
  int e = drawn.node("expand", {ref(z), axes({3, -1, 8, 6})}, {3, 4, 8, 6});
  int s = drawn.node("select.int", {ref(e), integer(0), integer(1)}, {4, 8, 6});
  drawn.returns(drawn.node("mean.dim", {ref(s), axes({0})}, {8, 6}));
  EXPECT_EQ(axis_of(drawn, y), 1);
  EXPECT_EQ(axis_of(drawn, e), 2);
  EXPECT_EQ(axis_of(drawn, *drawn.graph.outputs.value_id()), 0);
}

TEST(GraphSlices, LeaveWholeWhatNoRuleCuts) {
  auto unknown = [](const std::string& op, std::vector<GraphArgument> more, std::vector<int64_t> shape) {
    Drawn drawn;
    std::vector<GraphArgument> arguments = {ref(drawn.input({8, 6}))};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return axis_of_input(drawn.returns(drawn.node(op, arguments, std::move(shape))));
  };
  EXPECT_EQ(unknown("frobnicate", {}, {8, 6}), kNoPlan);
  EXPECT_EQ(unknown("sum", {}, {}), kNoPlan);
  EXPECT_EQ(unknown("bernoulli", {}, {8, 6}), kNoPlan);
  EXPECT_EQ(unknown("dropout", {number(0.5), {true}}, {8, 6}), kNoPlan);
  EXPECT_EQ(unknown("dropout", {number(0.5), {false}}, {8, 6}), 0);
  EXPECT_EQ(unknown("relu_", {}, {8, 6}), kNoPlan);  // writes into an input
  EXPECT_EQ(unknown("sum.dim_IntList", {axes({0, 1})}, {}), kNoPlan);
  EXPECT_EQ(unknown("squeeze", {}, {8, 6}), kNoPlan);
  EXPECT_EQ(unknown("view", {axes({6, 8})}, {6, 8}), kNoPlan);
  EXPECT_EQ(unknown("abs.out", {}, {8, 6}), kNoPlan);
}

TEST(GraphSlices, LeaveWholeWhereABatchIsNormalised) {
  for (bool training : {true, false}) {
    Drawn drawn;
    int x = drawn.input({8, 4, 5, 5}), mean = drawn.weight({4}), variance = drawn.weight({4});
    std::vector<GraphArgument> norm = {ref(x),     {},          {},           ref(mean), ref(variance),
                                       {training}, number(0.1), number(1e-5), {false}};
    drawn.returns(drawn.node("batch_norm", norm, {8, 4, 5, 5}));
    EXPECT_EQ(axis_of_input(drawn), training ? kNoPlan : 0);
  }
}

TEST(GraphSlices, LeaveWholeWhereAnInPlaceOperatorSharesMemory) {
  Drawn drawn;
  int x = drawn.input({8, 6});
  int y = drawn.node("exp", {ref(x)}, {8, 6});
  int v = drawn.node("view", {ref(y), axes({8, 6})}, {8, 6});
  drawn.node("neg_", {ref(v)}, {8, 6});
  drawn.returns(drawn.node("relu", {ref(y)}, {8, 6}));
  EXPECT_EQ(axis_of_input(drawn), kNoPlan);
}

TEST(GraphSlices, LeaveWholeWhatIsJoinedOrSelectedAlongTheAxis) {
  Drawn drawn;
  int x = drawn.input({8});
  int y = drawn.input({4});
  drawn.returns(drawn.node("cat", {refs({x, y})}, {12}));
  EXPECT_EQ(axis_of_input(drawn), kNoPlan);
  Drawn other;
  x = other.input({8});
  other.returns(other.node("slice.Tensor", {ref(x), integer(0), integer(2), integer(6)}, {4}));
  EXPECT_EQ(axis_of_input(other), kNoPlan);
  Drawn counted;
  x = counted.input({8});
  y = counted.node("arange", {integer(8)}, {8});
  counted.returns(counted.node("add.Tensor", {ref(x), ref(y)}, {8}));
  EXPECT_EQ(axis_of_input(counted), kNoPlan);
}

Drawn log_softmax_of(int64_t rows, int64_t columns) {
  Drawn drawn;
  int x = drawn.input({rows, columns});
  drawn.returns(drawn.node("log_softmax.int", {ref(x), integer(1)}, {rows, columns}));
  return drawn;
}

TEST(ExactRun, IsCutOnlyBeyondTheLimit) {
  const Drawn small = log_softmax_of(64, 1024), large = log_softmax_of(4096, 393216);
  EXPECT_FALSE(plan_exact_run(GraphUses(small.graph)).slices);
  EXPECT_TRUE(plan_exact_run(GraphUses(small.graph), 1 << 18).slices);
  const auto run = plan_exact_run(GraphUses(large.graph));
  ASSERT_TRUE(run.slices);
  const Graph part = slice_graph(large.graph, *run.slices, run.parts);
  EXPECT_LE(run.inputs + live_peak(GraphUses(part)).exact, kExactBytes);
  EXPECT_GT(run.inputs + live_peak(GraphUses(part)).exact, kExactBytes / 2);
}

TEST(ExactRun, IsInTheStatedMemoryNeed) {
  const Drawn drawn = log_softmax_of(4096, 393216);
  const int64_t matrix = int64_t{4096} * 393216 * 4;
  const auto need = memory_need(GraphUses(drawn.graph), false);
  EXPECT_LT(need.exact_peak, 2 * matrix + kExactBytes);
  EXPECT_LT(memory_need(GraphUses(drawn.graph), true).gpu, 16 * matrix);
}

}  // namespace
}  // namespace tilepilot::eval
