#include "eval/graph/output_parts.h"

#include <algorithm>
#include <string_view>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {
namespace {

constexpr size_t kMostParts = 64;

std::string_view name_of_operator(const GraphNode& node) {
  std::string_view op = node.op;
  if (op.substr(0, 6) == "aten::") op.remove_prefix(6);
  return op;
}

const GraphNode* maker_of(const Graph& graph, int id) {
  for (auto& node : graph.nodes) {
    if (std::find(node.outputs.begin(), node.outputs.end(), id) != node.outputs.end()) return &node;
  }
  return nullptr;
}

// The only operand that has the result's shape, of an operator that may keep elements at their places; -1: none.
int operand_in_place(const Graph& graph, const GraphNode& node, const GraphValue& result) {
  constexpr std::string_view kKeepPlaces[] = {
      "relu",  "sigmoid", "tanh",     "gelu", "silu",   "clone",    "contiguous", "dropout", "neg", "leaky_relu", "elu",
      "clamp", "abs",     "_to_copy", "to",   "detach", "hardtanh", "mul",        "div",     "add", "sub"};
  if (std::find(std::begin(kKeepPlaces), std::end(kKeepPlaces), name_of_operator(node)) == std::end(kKeepPlaces))
    return -1;
  const int* first = node.args.empty() ? nullptr : node.args[0].value_id();
  if (!first || graph.values[static_cast<size_t>(*first)].shape != result.shape) return -1;
  return *first;
}

std::vector<OutputPart> joined_parts(const Graph& graph, const GraphNode& node, const GraphValue& result) {
  const std::string_view op = name_of_operator(node);
  const bool stacks = op == "stack";
  if ((!stacks && op != "cat" && op != "concat") || result.shape.empty() || node.args.empty()) return {};
  const auto* list = std::get_if<GraphList>(&node.args[0].data);
  const auto* dimension = argument_of(node, 1, "dim");
  const auto* given = dimension ? std::get_if<int64_t>(&dimension->data) : nullptr;
  if (!list || list->size() < 2 || list->size() > kMostParts) return {};
  const auto rank = static_cast<int64_t>(result.shape.size());
  const int64_t axis = given ? (*given + rank) % rank : 0;
  std::vector<OutputPart> parts;
  int64_t begin = 0;
  for (auto& item : *list) {
    const int* id = item.value_id();
    if (!id) return {};
    auto& shape = graph.values[static_cast<size_t>(*id)].shape;
    if (!stacks && shape.size() != result.shape.size()) continue;  // `cat` leaves out empty vectors
    const int64_t length = stacks ? 1 : shape[static_cast<size_t>(axis)];
    if (length > 0) parts.push_back({axis, begin, length});
    begin += length;
  }
  return begin == result.shape[static_cast<size_t>(axis)] ? parts : std::vector<OutputPart>{};
}

std::vector<OutputPart> parts_of(const Graph& graph, int id) {
  const GraphValue& result = graph.values[static_cast<size_t>(id)];
  if (result.numel() == 0) return {};
  while (const GraphNode* node = maker_of(graph, id)) {
    auto parts = joined_parts(graph, *node, result);
    if (!parts.empty()) return parts;
    id = operand_in_place(graph, *node, result);
    if (id < 0) break;
  }
  return {};
}

}  // namespace

std::vector<std::vector<OutputPart>> output_parts(const Graph& graph) {
  std::vector<std::vector<OutputPart>> parts;
  for_each_value(graph.outputs, [&](int id) {
    if (graph.values[static_cast<size_t>(id)].is_tensor) parts.push_back(parts_of(graph, id));
  });
  return parts;
}

}  // namespace tilepilot::eval
