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

// Of two tensors joined along `axis` and then moved by a node.
std::vector<OutputPart> parts_after(GraphNode move, std::vector<GraphValue> values, int64_t axis,
                                    std::vector<int64_t> shape) {
  values.push_back(of_shape(std::move(shape)));
  Graph graph = joined("aten::cat", std::move(values), axis);
  graph.nodes.push_back(std::move(move));
  graph.outputs = {ValueRef{3}};
  return output_parts(graph).at(0);
}

void expect_second(const std::vector<OutputPart>& parts, OutputPart expected) {
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].axis, expected.axis);
  EXPECT_EQ(parts[1].begin, expected.begin);
  EXPECT_EQ(parts[1].length, expected.length);
}

TEST(OutputParts, FollowMovedElements) {
  const std::vector<GraphValue> flat = {of_shape({6}), of_shape({4}), of_shape({10})},
                                wide = {of_shape({2, 6}), of_shape({2, 4}), of_shape({2, 10})};
  const auto node = [](const std::string& op, std::vector<GraphArgument> others) {
    GraphNode made{op, "", {{ValueRef{2}}}, {}, {3}, "", 0};
    for (auto& other : others) made.args.push_back(std::move(other));
    return made;
  };
  const auto list = [](std::vector<int64_t> numbers) {
    GraphList items;
    for (const int64_t number : numbers) items.push_back({number});
    return GraphArgument{std::move(items)};
  };
  expect_second(parts_after(node("aten::view", {}), flat, 0, {1, 10}), {1, 6, 4});
  expect_second(parts_after(node("aten::view", {}), flat, 0, {5, 2}), {0, 3, 2});
  expect_second(parts_after(node("aten::flip", {list({0})}), flat, 0, {10}), {0, 0, 4});
  expect_second(parts_after(node("aten::view", {}), wide, 1, {2, 5, 2}), {1, 3, 2});
  expect_second(parts_after(node("aten::permute", {list({1, 0})}), wide, 1, {10, 2}), {0, 6, 4});
  expect_second(parts_after(node("aten::transpose", {{int64_t{0}}, {int64_t{-1}}}), wide, -1, {10, 2}), {0, 6, 4});
  EXPECT_TRUE(parts_after(node("aten::view", {}), wide, 1, {20}).empty());
  EXPECT_TRUE(parts_after(node("aten::cumsum", {{int64_t{0}}}), flat, 0, {10}).empty());
}

TEST(OutputParts, AreNoneOfOtherOperators) {
  EXPECT_TRUE(
      output_parts(joined("aten::matmul", {of_shape({4, 3}), of_shape({3, 5}), of_shape({4, 5})}, 0))[0].empty());
}

}  // namespace
}  // namespace tilepilot::eval
