// Parts of outputs that were made apart and then joined.
#include "eval/graph/output_parts.h"

#include <gtest/gtest.h>

namespace tilepilot::eval {
namespace {

GraphValue of_shape(std::vector<int64_t> shape) {
  return {GraphValue::Kind::node, "t", true, "float32", std::move(shape), {}};
}

Graph joined(const std::string& op, std::vector<GraphValue> values, int64_t axis) {
  Graph graph;
  graph.values = std::move(values);
  GraphNode node{op, "", {{GraphList{{ValueRef{0}}, {ValueRef{1}}}}, {axis}}, {}, {2}, "", 0};
  graph.nodes = {node};
  graph.outputs = {ValueRef{2}};
  return graph;
}

TEST(OutputParts, OfConcatenatedTensors) {
  auto parts = output_parts(joined("aten::cat", {of_shape({4, 3}), of_shape({4, 5}), of_shape({4, 8})}, -1));
  ASSERT_EQ(parts.size(), 1u);
  ASSERT_EQ(parts[0].size(), 2u);
  EXPECT_EQ(parts[0][1].axis, 1);
  EXPECT_EQ(parts[0][1].begin, 3);
  EXPECT_EQ(parts[0][1].length, 5);
}

TEST(OutputParts, OfStackedTensorsThroughAFunction) {
  Graph graph =
      joined("aten::stack", {of_shape({4, 3}), of_shape({4, 3}), of_shape({2, 4, 3}), of_shape({2, 4, 3})}, 0);
  graph.nodes.push_back({"aten::relu", "", {{ValueRef{2}}}, {}, {3}, "", 0});
  graph.outputs = {ValueRef{3}};
  auto parts = output_parts(graph);
  ASSERT_EQ(parts[0].size(), 2u);
  EXPECT_EQ(parts[0][1].axis, 0);
  EXPECT_EQ(parts[0][1].length, 1);
}

TEST(OutputParts, AreNoneOfOtherOperators) {
  EXPECT_TRUE(
      output_parts(joined("aten::matmul", {of_shape({4, 3}), of_shape({3, 5}), of_shape({4, 5})}, 0))[0].empty());
}

}  // namespace
}  // namespace tilepilot::eval
