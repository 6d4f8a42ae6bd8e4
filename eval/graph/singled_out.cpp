#include "eval/graph/singled_out.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "eval/graph/choices.h"
#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {
namespace {

using Set = std::set<std::string_view>;

// What comes out are the elements of the first operand, or some of them.
bool passes_elements_on(const GraphNode& node) {
  static const Set kNames = {"view",    "reshape", "flatten",     "unsqueeze",    "squeeze",    "transpose", "permute",
                             "t",       "expand",  "to",          "_to_copy",     "contiguous", "clone",     "detach",
                             "alias",   "float",   "long",        "int",          "slice",      "select",    "narrow",
                             "type_as", "double",  "expand_as",   "view_as",      "unflatten",  "movedim",   "chunk",
                             "split",   "unbind",  "ravel",       "broadcast_to", "swapaxes",   "roll",      "flip",
                             "repeat",  "tile",    "index_select"};
  return kNames.count(short_name(node)) != 0;
}

// Outputs that hold elements of an operand which stands in a list: what functions of two tensors begin with.
std::vector<int> of_listed(const GraphNode& node, int id) {
  static const Set kJoins = {"cat", "stack", "concat", "concatenate"};
  const bool spreads = plain_name(node) == "broadcast_tensors";
  const auto* list = node.args.empty() ? nullptr : std::get_if<GraphList>(&node.args[0].data);
  if (!list || (!spreads && kJoins.count(plain_name(node)) == 0)) return {};
  std::vector<int> outputs;
  for (size_t i = 0; i < list->size(); ++i) {
    const int* value = (*list)[i].value_id();
    const size_t place = spreads ? i : 0;
    if (value && *value == id && place < node.outputs.size() && node.outputs[place] >= 0)
      outputs.push_back(node.outputs[place]);
  }
  return outputs;
}

void add(double value, SingledOut& found) {
  if (std::isnan(value)) return;
  if (std::find(found.values.begin(), found.values.end(), value) == found.values.end()) found.values.push_back(value);
}

enum class Searched { input, counter, weight };

// What the elements of an input are held against.
class Search {
 public:
  Search(const GraphUses& uses, const FewElements& elements, const RarePlaces& rare_places,
         Searched what = Searched::input)
      : uses_(uses), elements_(elements), rare_places_(rare_places), what_(what) {}

  // NaN passes through arithmetic, and so do most infinities.
  void follow_what_is_no_number(int id, SingledOut& found, int depth = 0) const {
    static const Set kArithmetic = {"add",    "sub", "rsub", "mul",  "div", "neg", "abs", "exp",  "sqrt",
                                    "square", "pow", "amax", "amin", "max", "min", "sum", "mean", "logsumexp"};
    constexpr int kDeepest = 8;
    for (const int index : uses_.users(id)) {
      const GraphNode& node = uses_.node(index);
      SingledOut own;
      look(node, id, own);
      found.nan = found.nan || own.nan;
      found.infinite = found.infinite || own.infinite;
      if (depth < kDeepest)
        for (const int output : of_listed(node, id)) follow_what_is_no_number(output, found, depth + 1);
      if (depth == kDeepest || (!kArithmetic.count(short_name(node)) && !passes_elements_on(node))) continue;
      for (const int output : node.outputs)
        if (output >= 0) follow_what_is_no_number(output, found, depth + 1);
    }
  }

  // What arithmetic with a number makes of elements is compared as well: `before` gives the elements that it makes into
  // a value.
  using Before = std::function<std::vector<double>(double)>;
  void follow(int id, SingledOut& found, const Before& before, int depth = 0) const {
    constexpr int kDeepest = 8;
    for (const int index : uses_.users(id)) {
      const GraphNode& node = uses_.node(index);
      SingledOut own;
      look(node, id, own);
      add_all(own, before, found);
      if (depth < kDeepest)
        for (const int output : of_listed(node, id)) follow(output, found, before, depth + 1);
      const int* first = node.args.empty() ? nullptr : node.args[0].value_id();
      if (!first || *first != id || depth == kDeepest) continue;
      const auto inverse = passes_elements_on(node) || plain_name(node) == "copy"
                               ? Before([](double value) { return std::vector{value}; })
                               : inverse_of(node);
      if (!inverse) continue;
      const Before both = [&](double value) {
        std::vector<double> elements;
        for (const double between : inverse(value))
          for (const double element : before(between)) elements.push_back(element);
        return elements;
      };
      for (const int output : node.outputs) {
        if (output < 0) continue;
        // Truth is being unlike zero.
        if (uses_.value(output).dtype == "bool") add(0, found);
        follow(output, found, both, depth + 1);
      }
    }
  }

 private:
  const GraphUses& uses_;
  const FewElements& elements_;
  const RarePlaces& rare_places_;
  Searched what_;

  static void add_all(const SingledOut& own, const Before& before, SingledOut& found) {
    found.nan = found.nan || own.nan;
    found.infinite = found.infinite || own.infinite;
    found.is_flag = found.is_flag || own.is_flag;
    for (const double value : own.values)
      for (const double element : before(value)) add(element, found);
  }

  // Empty: the node does not compute with one number.
  Before inverse_of(const GraphNode& node) const {
    const std::string_view name = plain_name(node);
    if (name == "neg") return [](double value) { return std::vector{-value}; };
    if (name == "abs") return [](double value) { return std::vector{value, -value}; };
    // Of inputs that is a matter of roundings.
    if (name == "exp" && what_ == Searched::weight)
      return [](double value) { return value > 0 ? std::vector{std::log(value)} : std::vector<double>(); };
    const auto number = node.args.size() > 1 ? number_of(&node.args[1]) : std::nullopt;
    if (!number || node.args.size() > 2 || !node.kwargs.empty()) return {};
    const double by = *number;
    if (name == "add") return [by](double value) { return std::vector{value - by}; };
    if (name == "sub") return [by](double value) { return std::vector{value + by}; };
    if (name == "rsub") return [by](double value) { return std::vector{by - value}; };
    if (name == "mul" && by != 0) return [by](double value) { return std::vector{value / by}; };
    if (name == "div" && by != 0) return [by](double value) { return std::vector{value * by}; };
    if (name == "floor_divide" && by != 0) return [by](double value) { return std::vector{value * by}; };
    // Of a number that only grows, the next of those that leave a remainder is one as well.
    if (name == "remainder" && by > 0)
      return [by, counts = what_ == Searched::counter](double value) {
        return counts ? std::vector{value, value + by} : std::vector{value};
      };
    return {};
  }

  // A number in the graph, or the elements of a small tensor.
  std::vector<double> numbers_of(const GraphArgument* argument) const {
    if (const auto number = number_of(argument)) return {*number};
    const int* id = argument ? argument->value_id() : nullptr;
    if (!id) return {};
    auto elements = elements_(*id);
    const int producer = uses_.producer(*id);
    if (!elements.empty() || producer < 0) return elements;
    // Few elements, repeated.
    const GraphNode& node = uses_.node(producer);
    return passes_elements_on(node) && !node.args.empty() ? numbers_of(&node.args[0]) : std::vector<double>();
  }

  static constexpr double kNear = 0x1p-8;

  // What a node that takes the elements says of them.
  void look(const GraphNode& node, int id, SingledOut& found) const {
    static const Set kEqual = {"eq", "ne", "isin"};
    static const Set kOrder = {"lt", "le", "gt", "ge", "threshold", "hardshrink", "bucketize", "searchsorted"};
    static const Set kBounds = {"clamp", "clamp_min", "clamp_max", "clip", "maximum", "minimum"};
    static const Set kAsks = {"isnan", "isfinite", "nan_to_num", "nansum", "nanmean", "nanmedian", "fmax", "fmin"};
    static const Set kAsksForInfinity = {"isinf", "isneginf", "isposinf", "isfinite", "nan_to_num"};
    const std::string_view name = short_name(node);
    const bool is_integer = uses_.value(id).dtype.find("int") != std::string::npos;
    const auto takes = [&](size_t place) {
      const int* value = place < node.args.size() ? node.args[place].value_id() : nullptr;
      return value && *value == id;
    };
    if (kAsks.count(name) || (kEqual.count(name) && takes(0) && takes(1)))
      found.nan = true;  // only NaN differs from itself
    if (kAsksForInfinity.count(name)) found.infinite = true;
    if (kEqual.count(name))
      for (const GraphArgument* other : others_of(node, id))
        found.infinite = found.infinite || std::isinf(number_of(other).value_or(0));
    if (!is_integer && kBounds.count(name)) look_at_bounds(node, id, found);
    if (what_ == Searched::weight && name == "hardtanh")
      for (const GraphArgument* other : others_of(node, id))
        if (const auto number = number_of(other)) add(*number, found);
    // Beside a bound of floating numbers what is computed is nearly the same.
    const bool bounds = is_integer && kBounds.count(name), orders = kOrder.count(name);
    if (bounds || orders || kEqual.count(name)) {
      std::set<double> numbers;
      for (const GraphArgument* other : others_of(node, id))
        for (const double number : numbers_of(other)) numbers.insert(number);
      for (const double number : numbers) add(number, found);
      for (const double number : numbers)
        for (const double beside : {-1.0, 1.0})
          if (is_integer && (bounds || orders)) add(number + beside, found);
      // On the one side and on the other, near and far.
      for (const double number : numbers)
        for (const double factor : {1 - kNear, 1 + kNear, 2.0})
          if (!is_integer && orders && number != 0) add(number * factor, found);
      if (name == "hardshrink")
        for (const double number : numbers) add(-number, found);
    }
    const bool to_bool = node.outputs.size() == 1 && node.outputs[0] >= 0 &&
                         uses_.value(node.outputs[0]).dtype == "bool" && passes_elements_on(node);
    if (name == "rsub" || name == "logical_not" || to_bool) found.is_flag = true;
    if (name == "binary_cross_entropy" && takes(0))  // its logarithms have a bound
      for (const double end : {0.0, 1.0}) add(end, found);
    if (name == "poisson_nll_loss" && takes(1)) add(1, found);  // where Stirling's term begins
    if (is_integer) look_at_loss(node, id, found);
    if (is_integer && rare_places_) look_at_table(node, id, found);
  }

  // Bounds that no other stress goes beyond.
  void look_at_bounds(const GraphNode& node, int id, SingledOut& found) const {
    constexpr double kReached = 0x1p20, kMost = 0x1p126;
    for (const GraphArgument* other : others_of(node, id)) {
      const double bound = number_of(other).value_or(0);
      if (what_ == Searched::weight && number_of(other)) add(bound, found);
      if (std::abs(bound) >= kReached && std::abs(bound) <= kMost) add(2 * bound, found);
    }
  }

  // Elements that are looked up at the value, along the first axis.
  void look_at_table(const GraphNode& node, int id, SingledOut& found) const {
    const int* table = node.args.empty() ? nullptr : node.args[0].value_id();
    if (!table || *table == id || !is_gather(short_name(node))) return;
    for (const int64_t place : rare_places_(*table)) add(static_cast<double>(place), found);
  }

  // Operands and bounds beside the value.
  static inline const Set kBoundNames = {"min", "max", "other", "lambd", "threshold", "boundaries"};
  static std::vector<const GraphArgument*> others_of(const GraphNode& node, int id) {
    std::vector<const GraphArgument*> others;
    for (size_t i = 0; i < node.args.size(); ++i)
      if (const int* value = node.args[i].value_id(); !value || *value != id) others.push_back(&node.args[i]);
    for (const auto& [name, argument] : node.kwargs)
      if (kBoundNames.count(name)) others.push_back(&argument);
    return others;
  }

  // Targets that a loss leaves out, where the model names them. PyTorch's default, -100, is no label that a model
  // speaks of: programs need not know it.
  static void look_at_loss(const GraphNode& node, int id, SingledOut& found) {
    static const Set kLosses = {"cross_entropy_loss", "nll_loss", "nll_loss2d", "nll_loss_nd"};
    constexpr double kIgnoredByDefault = -100;
    const auto* target = argument_of(node, 1, "target");
    const bool is_target = target && target->value_id() && *target->value_id() == id;
    if (!is_target || !kLosses.count(short_name(node))) return;
    const double ignored = number_of(argument_of(node, 4, "ignore_index")).value_or(kIgnoredByDefault);
    if (ignored != kIgnoredByDefault) add(ignored, found);
  }
};

// Of several elements with one index, which is kept is open, unless all are one number.
bool writes_by_index(const GraphNode& node) {
  static const Set kNames = {"index_put",   "index_put_", "_index_put_impl_", "index_copy",
                             "index_copy_", "scatter",    "scatter_",         "put"};
  return kNames.count(short_name(node)) != 0 && node.overload != "value";
}

// Values that decide by which indices, and what, is written.
std::set<int> decide_writes(const GraphUses& uses, const Graph& graph) {
  std::set<int> decide;
  std::vector<int> open;
  for (const GraphNode& node : graph.nodes) {
    if (!writes_by_index(node)) continue;
    const std::vector<int> used = operands(node);
    if (!used.empty()) open.insert(open.end(), used.begin() + 1, used.end());
  }
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    if (!decide.insert(id).second || uses.producer(id) < 0) continue;
    const std::vector<int> used = operands(uses.node(uses.producer(id)));
    open.insert(open.end(), used.begin(), used.end());
  }
  return decide;
}

// Whether any number of the integers' type may come: arithmetic is done with them or, with those of 8 bits (pixels,
// quantised numbers), they become floating ones. A remainder is within bounds again, whatever is done with it.
bool is_computed(const GraphUses& uses, int input) {
  static const Set kArithmetic = {"add", "sub",         "rsub",    "mul",         "div",        "floor_divide",
                                  "neg", "abs",         "square",  "bitwise_and", "bitwise_or", "bitwise_xor",
                                  "sum", "bitwise_not", "__and__", "__or__",      "__xor__",    "cumsum",
                                  "cat", "stack",       "fmod",    "remainder"};
  static const Set kOfTheFirst = {"__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift"};
  static const Set kBytes = {"uint8", "int8"};
  bool is_such = false;
  std::set<int> seen = {input};
  std::vector<int> open = {input};
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    for (const int index : uses.users(id)) {
      const GraphNode& node = uses.node(index);
      const std::string_view name = plain_name(node);
      const int* first = node.args.empty() ? nullptr : node.args[0].value_id();
      const bool shifts = kOfTheFirst.count(name) != 0 && first && *first == id;
      const bool computes = kArithmetic.count(name) != 0 || shifts;
      const bool passes = passes_elements_on(node) && first && *first == id;  // and not as indices
      if (!computes && !passes) return false;
      is_such = is_such || computes;
      for (const int output : node.outputs) {
        if (output < 0) continue;
        const std::string_view type = uses.value(output).dtype;
        if (type == "bool") return false;
        const bool ends = type.find("int") == std::string_view::npos || name == "remainder" || name == "fmod";
        is_such = is_such || (ends && kBytes.count(uses.value(input).dtype) != 0);
        if (!ends && seen.insert(output).second) open.push_back(output);
      }
    }
  }
  return is_such;
}

// Floating elements are compared with what a number is in their type.
void round_to_type(std::string_view type, std::vector<double>& values) {
  if (type != "float32") return;
  std::vector<double> rounded;
  for (const double value : values) {
    const double own = static_cast<float>(value);
    if (std::find(rounded.begin(), rounded.end(), own) == rounded.end()) rounded.push_back(own);
  }
  values = std::move(rounded);
}

// nullptr: the value is not drawn one element after the other.
const GraphNode* draw_of(const GraphUses& recipe, int id) {
  const int producer = recipe.producer(id);
  if (producer < 0) return nullptr;
  const GraphNode& node = recipe.node(producer);
  if (short_name(node) == "randint" || short_name(node) == "randint_like") return &node;
  const int* first = node.args.empty() ? nullptr : node.args[0].value_id();
  return first && passes_elements_on(node) ? draw_of(recipe, *first) : nullptr;
}

// randint(high, size) and randint(low, high, size), and the same of randint_like(tensor, ...).
std::optional<std::pair<double, double>> range_of(const GraphNode& draw) {
  std::vector<double> bounds;
  for (const GraphArgument& argument : draw.args)
    if (const auto number = number_of(&argument); number && bounds.size() < 2) bounds.push_back(*number);
  const auto* low = argument_of(draw, draw.args.size(), "low");
  const auto* high = argument_of(draw, draw.args.size(), "high");
  if (const auto number = number_of(low)) bounds.insert(bounds.begin(), *number);
  if (const auto number = number_of(high)) bounds.push_back(*number);
  if (bounds.empty() || bounds.size() > 2) return std::nullopt;
  const double first = bounds.size() == 2 ? bounds[0] : 0, last = bounds.back() - 1;
  return first <= last ? std::optional(std::pair{first, last}) : std::nullopt;
}

}  // namespace

std::vector<int64_t> turning_points(const Graph& forward, int buffer, const FewElements& elements) {
  const GraphUses uses(forward);
  SingledOut found;
  Search(uses, elements, {}, Searched::counter).follow(buffer, found, [](double value) { return std::vector{value}; });
  std::set<int64_t> points;
  constexpr double kMost = 1e9;
  for (const double value : found.values)
    if (value >= 0 && value <= kMost && value == std::floor(value)) points.insert(static_cast<int64_t>(value));
  return {points.begin(), points.end()};
}

std::vector<double> bounds_of_weight(const Graph& forward, int weight) {
  const GraphUses uses(forward);
  const FewElements none = [](int) { return std::vector<double>(); };
  const RarePlaces nowhere;
  SingledOut found;
  Search(uses, none, nowhere, Searched::weight).follow(weight, found, [](double value) { return std::vector{value}; });
  std::erase_if(found.values, [](double value) { return !std::isfinite(value); });
  std::sort(found.values.begin(), found.values.end());
  return found.values;
}

std::vector<SingledOut> singled_out(const Graph& forward, const Graph& recipe, const FewElements& elements,
                                    const RarePlaces& rare_places) {
  const GraphUses uses(forward), made(recipe);
  const std::set<int> decide = decide_writes(uses, forward);
  const bool in_order = std::any_of(forward.nodes.begin(), forward.nodes.end(), keeps_order);
  std::vector<int> drawn;
  for_each_value(recipe.outputs, [&](int id) { drawn.push_back(id); });
  std::vector<SingledOut> result;
  for (const int id : forward.inputs) {
    if (!uses.value(id).is_tensor) continue;
    const size_t number = result.size();
    SingledOut& found = result.emplace_back();
    const Search search(uses, elements, rare_places);
    search.follow(id, found, [](double value) { return std::vector{value}; });
    search.follow_what_is_no_number(id, found);
    round_to_type(uses.value(id).dtype, found.values);
    found.may_repeat = decide.count(id) == 0;
    found.in_order = in_order;
    const GraphNode* draw = number < drawn.size() ? draw_of(made, drawn[number]) : nullptr;
    found.repeats = draw != nullptr;
    const bool is_integer = uses.value(id).dtype.find("int") != std::string::npos;
    found.is_computed = is_integer && is_computed(uses, id);
    if (draw) found.range = range_of(*draw);
    // An end of a range is what a loop or a bound leaves out.
    if (found.range && is_integer)
      for (const double end : {found.range->first, found.range->second}) add(end, found);
  }
  return result;
}

}  // namespace tilepilot::eval
