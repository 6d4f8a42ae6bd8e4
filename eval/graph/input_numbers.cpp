#include "eval/graph/input_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "eval/graph/argument_json.h"

namespace tilepilot::eval {
namespace {

// Each argument that holds no others, by its number in order.
void for_each_leaf(GraphArgument& argument, size_t& next, const std::function<void(size_t, GraphArgument&)>& visit) {
  const auto all = [&](GraphList& items) {
    for (GraphArgument& item : items) for_each_leaf(item, next, visit);
  };
  if (auto* list = std::get_if<GraphList>(&argument.data)) return all(*list);
  if (auto* tuple = std::get_if<GraphTuple>(&argument.data)) return all(tuple->items);
  if (auto* dict = std::get_if<GraphDict>(&argument.data)) return all(dict->values);
  visit(next++, argument);
}

const InputNumber* number_of_input(const Reference& reference, size_t input) {
  const auto found = std::find_if(reference.numbers.begin(), reference.numbers.end(),
                                  [&](const InputNumber& each) { return each.input == input; });
  return found == reference.numbers.end() ? nullptr : &*found;
}

GraphArgument* place_in(GraphNode& node, const InputNumber::Place& place) {
  GraphArgument* argument = nullptr;
  for (const size_t index : place.path) {
    if (!argument) {
      const size_t count = place.is_keyword ? node.kwargs.size() : node.args.size();
      if (index >= count) return nullptr;
      argument = place.is_keyword ? &node.kwargs[index].second : &node.args[index];
      continue;
    }
    auto* list = std::get_if<GraphList>(&argument->data);
    if (!list || index >= list->size()) return nullptr;
    argument = &(*list)[index];
  }
  return argument;
}

}  // namespace

const InputVariant* variant_of(const Reference& reference, int strength) {
  return strength < kFirstVariant ? nullptr : &reference.variants.at(static_cast<size_t>(strength - kFirstVariant));
}

GraphArgument other_number(const GraphArgument& number, int strength) {
  if (auto* integer = std::get_if<int64_t>(&number.data)) return {*integer + strength};
  auto* real = std::get_if<double>(&number.data);
  if (!real) return number;
  const double half = 0.5 * strength;
  return {*real == 0 ? half : *real * (1 + half)};
}

Graph with_other_numbers(const Reference& reference, int strength) {
  if (const InputVariant* variant = variant_of(reference, strength))
    return variant->forward ? *variant->forward : reference.forward;
  Graph graph = reference.forward;
  for (auto& number : reference.numbers) {
    for (auto& place : number.places) {
      GraphArgument* argument = place.node < graph.nodes.size() ? place_in(graph.nodes[place.node], place) : nullptr;
      if (argument) *argument = other_number(*argument, strength);
    }
  }
  return graph;
}

GraphArgument inputs_with_other_numbers(const Reference& reference, int strength) {
  GraphArgument inputs = reference.inputs.outputs;
  size_t next = 0;
  const InputVariant* variant = variant_of(reference, strength);
  for_each_leaf(inputs, next, [&](size_t input, GraphArgument& leaf) {
    if (variant && variant->input == input) leaf = variant->value;
    if (!variant && number_of_input(reference, input)) leaf = other_number(leaf, strength);
  });
  return inputs;
}

std::vector<std::string> fixed_numbers(const Reference& reference) {
  std::vector<std::string> fixed;
  GraphArgument inputs = reference.inputs.outputs;
  size_t next = 0;
  for_each_leaf(inputs, next, [&](size_t input, GraphArgument& leaf) {
    const bool is_plain = !leaf.value_id() && !std::holds_alternative<std::monostate>(leaf.data);
    const bool varies = std::any_of(reference.variants.begin(), reference.variants.end(),
                                    [&](const InputVariant& each) { return each.input == input; });
    if (is_plain && !varies && !number_of_input(reference, input))
      fixed.push_back(fmt::format("input {} ({})", input, to_json(leaf).dump()));
  });
  return fixed;
}

}  // namespace tilepilot::eval
