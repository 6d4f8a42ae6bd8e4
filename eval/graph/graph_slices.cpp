#include "eval/graph/graph_slices.h"

#include <algorithm>

#include "eval/graph/axis_rules.h"
#include "eval/graph/graph_cost.h"

namespace tilepilot::eval {
namespace {

using Cut = std::optional<AxisCut>;

int64_t extent_at(const GraphValue& value, int axis) { return value.shape[static_cast<size_t>(axis)]; }

bool fits(const GraphValue& value, const AxisCut& cut, int64_t extent) {
  const auto rank = static_cast<int>(value.shape.size());
  return value.is_tensor && cut.axis >= 0 && cut.axis < rank && extent_at(value, cut.axis) == extent * cut.unit;
}

int64_t product(const std::vector<int64_t>& extents, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= extents[i];
  return result;
}

// The same elements in another shape: an axis with as much before it, whose extent is a multiple of the parts.
Cut reshaped(const GraphValue& from, const GraphValue& to, const AxisCut& cut, int64_t extent) {
  const int64_t before = product(from.shape, 0, static_cast<size_t>(cut.axis));
  for (size_t axis = 0; axis < to.shape.size(); ++axis) {
    const int64_t places = to.shape[axis];
    if (places > 0 && places % extent == 0 && product(to.shape, 0, axis) == before)
      return AxisCut{static_cast<int>(axis), places / extent};
  }
  return std::nullopt;
}

// Follows one cut of one input through the graph. What a cut tensor is combined with must be cut too: that is demanded
// of what makes it, and the graph is gone through again.
class Propagation {
 public:
  Propagation(const GraphUses& uses, int64_t extent)
      : uses_(uses), extent_(extent), demands_(uses.graph().values.size()) {}

  std::optional<GraphSlices> from(int input, const AxisCut& cut) {
    demands_[static_cast<size_t>(input)] = cut;
    for (size_t round = 0; round <= demands_.size(); ++round) {
      demanded_ = false;
      if (!pass()) return std::nullopt;
      if (!demanded_) return reaches_outputs() ? std::optional(found_) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  Cut& cut_of(int id) { return found_.cuts[static_cast<size_t>(id)]; }
  const GraphValue& value(int id) const { return uses_.value(id); }

  bool pass() {
    found_ = {extent_, demands_, {}};
    auto& nodes = uses_.graph().nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (is_in_place(nodes[i]) && !writes_own_memory(i)) return false;
      if (!cut_node(i)) return false;
    }
    return true;
  }

  // Whether an operator in place writes into what another made for it alone.
  bool writes_own_memory(size_t index) const {
    auto& node = uses_.node(static_cast<int>(index));
    auto from = operands(node);
    const int maker = from.empty() ? -1 : uses_.producer(from[0]);
    if (maker < 0 || !makes_fresh_memory(node) || !makes_fresh_memory(uses_.node(maker))) return false;
    if (uses_.is_output(from[0]) || std::count(from.begin(), from.end(), from[0]) > 1) return false;
    auto& users = uses_.users(from[0]);
    return users.back() == static_cast<int>(index) &&
           std::all_of(users.begin(), users.end() - 1, [&](int user) { return makes_fresh_memory(uses_.node(user)); });
  }

  bool cut_node(size_t index) {
    auto& node = uses_.node(static_cast<int>(index));
    auto axes = axes_of(uses_, node);
    if (!axes || !mentions_cut_operands(*axes, node)) return false;
    Cut wanted;
    for (int id : node.outputs) {
      if (id >= 0 && cut_of(id) && !agree(wanted, *cut_of(id))) return false;
    }
    const bool ok = axes->reshapes ? cut_reshape(*axes, node, wanted) : cut_operands(*axes, wanted);
    return ok && (!wanted || (cut_results(node, *wanted) && cut_size(*axes, index, *wanted)));
  }

  static bool agree(Cut& wanted, const AxisCut& cut) {
    if (!wanted) wanted = cut;
    return *wanted == cut;
  }

  bool mentions_cut_operands(const NodeAxes& axes, const GraphNode& node) {
    auto ids = operands(node);
    return std::all_of(ids.begin(), ids.end(), [&](int id) {
      return !cut_of(id) || std::any_of(axes.operands.begin(), axes.operands.end(),
                                        [&](const OperandAxes& operand) { return operand.value == id; });
    });
  }

  bool cut_reshape(const NodeAxes& axes, const GraphNode& node, Cut& wanted) {
    const int from = axes.operands[0].value, to = node.outputs.empty() ? -1 : node.outputs[0];
    if (to < 0) return !cut_of(from);
    if (cut_of(from)) {
      auto cut = reshaped(value(from), value(to), *cut_of(from), extent_);
      return cut && agree(wanted, *cut);
    }
    if (!wanted) return true;
    auto cut = reshaped(value(to), value(from), *wanted, extent_);
    return cut && demand(from, *cut);
  }

  bool cut_operands(const NodeAxes& axes, Cut& wanted) {
    for (auto& operand : axes.operands) {
      const Cut cut = cut_of(operand.value);
      if (!cut) continue;
      const int to = operand.to[static_cast<size_t>(cut->axis)];
      if (to == kWhole || !agree(wanted, {to, cut->unit})) return false;
    }
    if (!wanted) return true;
    bool found = axes.repeats;
    for (auto& operand : axes.operands) {
      for (size_t axis = 0; axis < operand.to.size(); ++axis) {
        if (operand.to[axis] != wanted->axis || value(operand.value).shape[axis] == 1) continue;
        found = true;
        if (!demand(operand.value, {static_cast<int>(axis), wanted->unit})) return false;
      }
    }
    return found;
  }

  bool demand(int id, const AxisCut& cut) {
    if (cut_of(id)) return *cut_of(id) == cut;
    if (!fits(value(id), cut, extent_)) return false;
    demands_[static_cast<size_t>(id)] = cut;
    demanded_ = true;
    return true;
  }

  bool cut_results(const GraphNode& node, const AxisCut& cut) {
    for (int id : node.outputs) {
      if (id < 0) continue;
      if (!fits(value(id), cut, extent_)) return false;
      cut_of(id) = cut;
    }
    return true;
  }

  // The extent among the arguments, if one lists those of the results; -1 follows from the others.
  bool cut_size(const NodeAxes& axes, size_t index, const AxisCut& cut) {
    if (axes.sizes.empty()) return true;
    auto sizes = integers_of(argument_of(uses_.node(static_cast<int>(index)), axes.sizes_position, axes.sizes));
    const auto element = static_cast<size_t>(cut.axis);
    if (element >= sizes.size()) return false;
    if (sizes[element] == -1) return true;
    found_.sizes.push_back({index, axes.sizes, axes.sizes_position, element, cut.unit});
    return sizes[element] == extent_ * cut.unit;
  }

  bool reaches_outputs() {
    bool any = false, all = true;
    for_each_value(uses_.graph().outputs, [&](int id) {
      any = any || cut_of(id);
      all = all && (cut_of(id) || !value(id).is_tensor);
    });
    return any && all;
  }

  const GraphUses& uses_;
  const int64_t extent_;
  std::vector<Cut> demands_;
  bool demanded_ = false;
  GraphSlices found_;
};

bool has_row_major_strides(const GraphValue& value) {
  int64_t step = 1;
  for (size_t axis = value.shape.size(); axis-- > 0; step *= value.shape[axis]) {
    if (value.shape[axis] != 1 && value.strides[axis] != step) return false;
  }
  return true;
}

void shorten(GraphValue& value, const AxisCut& cut, int64_t parts) {
  const bool row_major = has_row_major_strides(value);
  value.shape[static_cast<size_t>(cut.axis)] = parts * cut.unit;
  int64_t step = 1;
  for (size_t axis = value.shape.size(); row_major && axis-- > 0; step *= value.shape[axis]) value.strides[axis] = step;
}

void resize(GraphNode& node, const CutSize& size, int64_t parts) {
  auto resize_argument = [&](GraphArgument& argument) {
    auto* list = std::get_if<GraphList>(&argument.data);
    (list ? (*list)[size.element] : argument).data = parts * size.unit;
  };
  for (auto& [name, argument] : node.kwargs) {
    if (name == size.argument) return resize_argument(argument);
  }
  resize_argument(node.args[size.position]);
}

int64_t exact_bytes_of(const GraphValue& value) {
  const bool floating = value.dtype.find("float") != std::string::npos;
  return !value.is_tensor ? 0 : floating ? 8 * value.numel() : bytes_of(value);
}

// In float64, inputs apart from weights and constants.
int64_t given_bytes(const Graph& graph, bool inputs) {
  int64_t bytes = 0;
  for (auto& value : graph.values) {
    if (value.kind == GraphValue::Kind::node || (value.kind == GraphValue::Kind::input) != inputs) continue;
    bytes += exact_bytes_of(value);
  }
  return bytes;
}

int64_t output_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for_each_value(graph.outputs, [&](int id) { bytes += exact_bytes_of(graph.values[static_cast<size_t>(id)]); });
  return bytes;
}

// What one slice of so many parts holds beside weights.
int64_t slice_bytes(const Graph& graph, const GraphSlices& slices, int64_t parts) {
  const Graph part = slice_graph(graph, slices, parts);
  return given_bytes(part, true) + live_peak(GraphUses(part)).exact;
}

}  // namespace

std::optional<GraphSlices> find_slices(const GraphUses& uses) {
  int largest = -1;
  for (int id : uses.graph().inputs) {
    const bool larger = largest < 0 || bytes_of(uses.value(id)) > bytes_of(uses.value(largest));
    if (uses.value(id).is_tensor && larger) largest = id;
  }
  if (largest < 0) return std::nullopt;
  for (size_t axis = 0; axis < uses.value(largest).shape.size(); ++axis) {
    const int64_t extent = uses.value(largest).shape[axis];
    if (extent < 2) continue;
    if (auto found = Propagation(uses, extent).from(largest, {static_cast<int>(axis), 1})) return found;
  }
  return std::nullopt;
}

Graph slice_graph(const Graph& graph, const GraphSlices& slices, int64_t parts) {
  Graph part = graph;
  for (size_t id = 0; id < part.values.size(); ++id) {
    if (slices.cuts[id]) shorten(part.values[id], *slices.cuts[id], parts);
  }
  for (auto& size : slices.sizes) resize(part.nodes[size.node], size, parts);
  return part;
}

ExactRun plan_exact_run(const GraphUses& uses, int64_t limit, FindSlices find) {
  auto& graph = uses.graph();
  ExactRun run;
  run.peak = live_peak(uses).exact;
  run.outputs = output_bytes(graph);
  run.inputs = given_bytes(graph, true);
  run.weights = given_bytes(graph, false);
  if (run.inputs + run.peak <= limit) return run;
  auto slices = find(uses);
  if (!slices) return run;
  constexpr int64_t kFewestSlices = 16;  // else they save little
  const int64_t budget = std::min(limit, (run.inputs + run.peak) / kFewestSlices);
  int64_t fitting = 1, too_many = slices->extent;
  while (too_many - fitting > 1) {
    const int64_t middle = fitting + (too_many - fitting) / 2;
    (slice_bytes(graph, *slices, middle) <= budget ? fitting : too_many) = middle;
  }
  const int64_t count = (slices->extent + fitting - 1) / fitting;
  fitting = (slices->extent + count - 1) / count;  // slices of like size
  const Graph part = slice_graph(graph, *slices, fitting);
  const int64_t inputs = given_bytes(part, true);
  const int64_t peak = live_peak(GraphUses(part)).exact + run.outputs;
  if (inputs + peak >= run.inputs + run.peak) return run;
  return {std::move(slices), fitting, peak, run.outputs, inputs, run.weights};
}

}  // namespace tilepilot::eval
