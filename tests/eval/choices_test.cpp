// Which outputs depend on which of equal elements is chosen.
#include "eval/graph/choices.h"

#include <gtest/gtest.h>

namespace tilepilot::eval {
namespace {

using Open = std::vector<bool>;

// Value 0 is the input; `op` makes 1 and 2 of it, and `then` makes 3 and 4 of these; all four are outputs.
Graph choosing(const std::string& op, const std::string& then, const std::string& before = "") {
  Graph graph;
  for (int i = 0; i < 6; ++i) graph.values.push_back({GraphValue::Kind::node, "t", true, "float32", {4, 8}, {8, 1}});
  int from = 0;
  if (!before.empty()) {
    graph.nodes.push_back({before, "", {{ValueRef{0}}}, {}, {5}, "", 0});
    from = 5;
  }
  graph.nodes.push_back({op, "", {{ValueRef{from}}}, {}, {1, 2}, "", 0});
  graph.nodes.push_back({then, "", {{ValueRef{1}}}, {}, {3}, "", 0});
  graph.nodes.push_back({then, "", {{ValueRef{2}}}, {}, {4}, "", 0});
  graph.inputs = {0};
  graph.outputs = {GraphList{{ValueRef{1}}, {ValueRef{2}}, {ValueRef{3}}, {ValueRef{4}}}};
  return graph;
}

TEST(OpenOutputs, AreIndicesAndWhatIsComputedFromThem) {
  EXPECT_EQ(open_outputs(choosing("aten::topk", "aten::exp")), (Open{false, true, false, true}));
  EXPECT_EQ(open_outputs(choosing("aten::sort", "aten::exp")), (Open{false, true, false, true}));
  EXPECT_EQ(open_outputs(choosing("aten::exp", "aten::neg")), (Open{false, false, false, false}));
}

TEST(OpenOutputs, AreNotPlacesOfTheFirst) {
  EXPECT_EQ(open_outputs(choosing("aten::max", "aten::exp")), (Open{false, false, false, false}));
  EXPECT_EQ(open_outputs(choosing("aten::max", "aten::exp", "aten::relu")), (Open{false, false, false, false}));
}

TEST(OpenOutputs, AreNotPlacesOfTheLastSoFar) {
  EXPECT_EQ(open_outputs(choosing("aten::cummax", "aten::exp")), (Open{false, false, false, false}));
  EXPECT_EQ(open_outputs(choosing("aten::cummin", "aten::exp", "aten::relu")), (Open{false, false, false, false}));
}

// Equal sums are equal in one order of adding and not in another.
TEST(OpenOutputs, ArePlacesAmongWhatIsRounded) {
  EXPECT_EQ(open_outputs(choosing("aten::max", "aten::exp", "aten::matmul")), (Open{false, true, false, true}));
  EXPECT_EQ(open_outputs(choosing("aten::min", "aten::exp", "aten::sum")), (Open{false, true, false, true}));
}

}  // namespace
}  // namespace tilepilot::eval
