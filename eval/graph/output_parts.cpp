#include "eval/graph/output_parts.h"

#include <algorithm>
#include <optional>
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

int64_t extent_of(const std::vector<int64_t>& extents, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= extents[i];
  return result;
}

std::optional<int64_t> axis_in(const GraphNode& node, size_t place, const char* name, int64_t rank) {
  const GraphArgument* argument = argument_of(node, place, name);
  const auto* given = argument ? std::get_if<int64_t>(&argument->data) : nullptr;
  return given && rank > 0 ? std::optional((*given + rank) % rank) : std::nullopt;
}

std::vector<int64_t> axes_in(const GraphNode& node, int64_t rank) {
  const GraphArgument* argument = argument_of(node, 1, "dims");
  const auto* list = argument ? std::get_if<GraphList>(&argument->data) : nullptr;
  std::vector<int64_t> axes;
  for (size_t i = 0; list && rank > 0 && i < list->size(); ++i)
    if (const auto* axis = std::get_if<int64_t>(&(*list)[i].data)) axes.push_back((*axis + rank) % rank);
  return axes;
}

using Parts = std::vector<OutputPart>;

// Elements keep their order: what came before an axis, and each step along it, are as many elements as before.
Parts parts_after_view(const Parts& parts, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const auto old_axis = static_cast<size_t>(parts[0].axis);
  const int64_t outer = extent_of(from, 0, old_axis), step = extent_of(from, old_axis + 1, from.size());
  for (size_t axis = 0; axis < to.size(); ++axis) {
    const int64_t new_step = extent_of(to, axis + 1, to.size());
    if (extent_of(to, 0, axis) != outer || to[axis] == 1 || new_step == 0) continue;
    Parts result;
    for (const OutputPart& part : parts) {
      if (part.begin * step % new_step != 0 || part.length * step % new_step != 0) return {};
      result.push_back({static_cast<int64_t>(axis), part.begin * step / new_step, part.length * step / new_step});
    }
    return result;
  }
  return {};
}

constexpr std::string_view kReshapes[] = {"view",    "reshape",   "_unsafe_view", "flatten",
                                          "squeeze", "unsqueeze", "unflatten",    "view_as"};
constexpr std::string_view kAxisMoves[] = {"flip", "permute", "transpose", "t"};

template <class Names>
bool is_among(const Names& names, std::string_view op) {
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}

// The parts of what a node makes of a tensor of `from` with these parts, where it only puts elements elsewhere; empty:
// it does not, or the parts are no pieces along one axis there.
Parts parts_after_move(const GraphNode& node, const Parts& parts, const std::vector<int64_t>& from,
                       const std::vector<int64_t>& to) {
  const std::string_view op = name_of_operator(node);
  const auto rank = static_cast<int64_t>(from.size());
  const int64_t axis = parts[0].axis;
  Parts moved = parts;
  if (is_among(kReshapes, op)) return parts_after_view(parts, from, to);
  if (op == "flip") {
    const auto axes = axes_in(node, rank);
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) return moved;
    for (OutputPart& part : moved) part.begin = from[static_cast<size_t>(axis)] - part.begin - part.length;
    return moved;
  }
  int64_t there = -1;
  if (op == "permute") {
    const auto axes = axes_in(node, rank);
    const auto found = std::find(axes.begin(), axes.end(), axis);
    if (found != axes.end()) there = found - axes.begin();
  } else if (op == "transpose" || op == "t") {
    const auto one = op == "t" ? 0 : axis_in(node, 1, "dim0", rank),
               other = op == "t" ? 1 : axis_in(node, 2, "dim1", rank);
    if (one && other) there = axis == *one ? *other : axis == *other ? *one : axis;
  }
  if (there < 0 || there >= static_cast<int64_t>(to.size())) return {};
  for (OutputPart& part : moved) part.axis = there;
  return moved;
}

Parts parts_of(const Graph& graph, int id) {
  std::vector<const GraphNode*> moves;  // what has moved the elements since, the last one first
  while (const GraphNode* node = maker_of(graph, id)) {
    const GraphValue& result = graph.values[static_cast<size_t>(id)];
    if (result.numel() == 0) return {};
    Parts parts = joined_parts(graph, *node, result);
    if (!parts.empty()) {
      for (; !moves.empty() && !parts.empty(); moves.pop_back()) {
        const auto& from = graph.values[static_cast<size_t>(*moves.back()->args[0].value_id())].shape;
        const auto& to = graph.values[static_cast<size_t>(moves.back()->outputs[0])].shape;
        parts = parts_after_move(*moves.back(), parts, from, to);
      }
      return parts;
    }
    const int in_place = operand_in_place(graph, *node, result);
    const int* operand = node->args.empty() ? nullptr : node->args[0].value_id();
    const std::string_view op = name_of_operator(*node);
    const bool moves_elements = is_among(kReshapes, op) || is_among(kAxisMoves, op);
    if (in_place < 0 && (!operand || !moves_elements)) return {};
    if (in_place < 0) moves.push_back(node);
    id = in_place >= 0 ? in_place : *operand;
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
