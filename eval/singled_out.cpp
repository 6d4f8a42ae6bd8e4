#include "eval/singled_out.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "eval/graph_uses.h"

namespace tilepilot::eval {
namespace {

using Set = std::set<std::string_view>;

// What comes out are the elements of the first operand, or some of them.
bool passes_elements_on(const GraphNode& node) {
  static const Set kNames = {
      "view",     "reshape",    "flatten", "unsqueeze", "squeeze", "transpose", "permute", "t",     "expand", "to",
      "_to_copy", "contiguous", "clone",   "detach",    "alias",   "float",     "long",    "int",   "slice",  "select",
      "narrow",   "type_as",    "double",  "expand_as", "view_as", "unflatten", "movedim", "chunk", "split",  "unbind"};
  return kNames.count(short_name(node)) != 0;
}

void add(double value, SingledOut& found) {
  if (std::isnan(value)) return;
  if (std::find(found.values.begin(), found.values.end(), value) == found.values.end()) found.values.push_back(value);
}

// What a node that takes the elements says of them.
void look(const GraphNode& node, int id, bool is_integer, SingledOut& found) {
  static const Set kEqual = {"eq", "ne"}, kOrder = {"lt", "le", "gt", "ge"};
  static const Set kAsks = {"isnan", "isfinite", "nan_to_num", "nansum", "nanmean", "nanmedian"};
  static const Set kAsksForInfinity = {"isinf", "isfinite", "nan_to_num"};
  static const Set kLosses = {"cross_entropy_loss", "nll_loss", "nll_loss2d", "nll_loss_nd"};
  constexpr double kIgnoredByDefault = -100;
  const std::string_view name = short_name(node);
  if (kAsks.count(name)) found.nan = true;
  if (kAsksForInfinity.count(name)) found.infinite = true;
  const auto number = number_of(argument_of(node, 1, "other"));
  if (number && kEqual.count(name)) add(*number, found);
  if (number && kOrder.count(name)) {
    add(*number, found);
    if (is_integer)
      for (const double beside : {-1.0, 1.0}) add(*number + beside, found);
  }
  const auto* target = argument_of(node, 1, "target");
  const bool is_target = target && target->value_id() && *target->value_id() == id;
  if (is_target && kLosses.count(name)) {
    const auto ignored = number_of(argument_of(node, 4, "ignore_index"));
    if (ignored && *ignored != kIgnoredByDefault) add(*ignored, found);
  }
}

void follow(const GraphUses& uses, int id, SingledOut& found) {
  for (const int index : uses.users(id)) {
    const GraphNode& node = uses.node(index);
    look(node, id, uses.value(id).dtype.find("int") != std::string::npos, found);
    const int* first = node.args.empty() ? nullptr : node.args[0].value_id();
    if (!first || *first != id || !passes_elements_on(node)) continue;
    for (const int output : node.outputs) {
      if (output < 0) continue;
      // Truth is being unlike zero.
      if (uses.value(output).dtype == "bool") add(0, found);
      follow(uses, output, found);
    }
  }
}

bool draws_one_by_one(const GraphUses& recipe, int id) {
  const int producer = recipe.producer(id);
  if (producer < 0) return false;
  const GraphNode& node = recipe.node(producer);
  if (short_name(node) == "randint" || short_name(node) == "randint_like") return true;
  const int* first = node.args.empty() ? nullptr : node.args[0].value_id();
  return first && passes_elements_on(node) && draws_one_by_one(recipe, *first);
}

}  // namespace

std::vector<SingledOut> singled_out(const Graph& forward, const Graph& recipe) {
  const GraphUses uses(forward), made(recipe);
  std::vector<int> drawn;
  for_each_value(recipe.outputs, [&](int id) { drawn.push_back(id); });
  std::vector<SingledOut> result;
  for (const int id : forward.inputs) {
    if (!uses.value(id).is_tensor) continue;
    const size_t number = result.size();
    SingledOut& found = result.emplace_back();
    follow(uses, id, found);
    found.repeats = number < drawn.size() && draws_one_by_one(made, drawn[number]);
  }
  return result;
}

}  // namespace tilepilot::eval
