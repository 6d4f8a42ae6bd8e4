#include "eval/graph/shortcuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "eval/graph/graph_cost.h"
#include "eval/graph/value_range.h"

namespace tilepilot::eval {
namespace {

using Names = std::set<std::string_view>;

bool is_one_of(const GraphNode& node, const Names& names) {
  auto name = short_name(node);
  if (is_in_place(node)) name.remove_suffix(1);
  return names.count(name) != 0;
}

const Names kAverages = {"mean", "sum"};
const Names kSelections = {"amax", "amin", "max", "min", "logsumexp", "prod", "mean", "sum"};
const Names kScalings = {"mul", "div", "add", "sub"};
// Monotone and increasing, so that the largest element stays the largest.
const Names kMonotone = {"relu",     "sigmoid", "tanh", "leaky_relu", "hardtanh",  "clamp",
                         "softplus", "elu",     "selu", "clamp_min",  "clamp_max", "hardsigmoid"};
const Names kViews = {"unsqueeze", "squeeze", "view", "reshape", "flatten"};

bool is_convolution(const GraphNode& node) { return short_name(node).substr(0, 4) == "conv"; }
bool is_matrix_product(const GraphNode& node) { return is_one_of(node, {"linear", "matmul", "mm", "addmm"}); }
bool is_max_pool(const GraphNode& node) {
  auto name = short_name(node);
  return name.substr(0, 8) == "max_pool" && name.find("backward") == std::string_view::npos;
}
bool is_average_pool(const GraphNode& node) { return short_name(node).substr(0, 8) == "avg_pool"; }

class Finder {
 public:
  explicit Finder(const GraphUses& uses) : uses_(uses), ranges_(value_ranges(uses)) {}

  std::vector<Shortcut> run() {
    for (size_t i = 0; i < uses_.graph().nodes.size(); ++i) {
      index_ = static_cast<int>(i);
      const GraphNode& node = uses_.node(index_);
      if (!uses_.is_live(index_)) {
        look_at_dead(node);
        continue;
      }
      look_at_range(node);
      look_at_axes(node);
      look_at_average(node);
      look_at_pool(node);
      look_at_norm(node);
      look_at_order(node);
    }
    return std::move(found_);
  }

 private:
  void add(ShortcutKind kind, const GraphNode& node, std::string sentence, double saved = 0) {
    const bool output = std::any_of(node.outputs.begin(), node.outputs.end(),
                                    [&](int id) { return id >= 0 && reaches_output_unchanged(id); });
    found_.push_back({kind, node.line, std::move(sentence), saved, output});
  }

  // Of a constant: what follows keeps it constant.
  bool reaches_output_unchanged(int id) const {
    if (uses_.is_output(id)) return true;
    auto& users = uses_.users(id);
    return std::any_of(users.begin(), users.end(), [&](int user) {
      const GraphNode& node = uses_.node(user);
      auto ids = operands(node);
      const bool alone = std::all_of(ids.begin(), ids.end(), [&](int other) { return other == id; });
      return alone && std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](int out) { return out >= 0 && reaches_output_unchanged(out); });
    });
  }

  const std::vector<int64_t>& shape(int id) const { return uses_.value(id).shape; }
  static int output_of(const GraphNode& node) { return node.outputs.empty() ? -1 : node.outputs[0]; }

  // Axes that a reduction goes over; all if it names none.
  std::vector<size_t> axes_of(const GraphNode& node) const {
    const int id = operands(node)[0];
    const auto rank = static_cast<int64_t>(shape(id).size());
    auto named = integers_of(argument_of(node, 1, "dim"));
    std::vector<size_t> axes;
    for (int64_t axis = 0; named.empty() && axis < rank; ++axis) axes.push_back(static_cast<size_t>(axis));
    for (int64_t axis : named) axes.push_back(static_cast<size_t>(axis < 0 ? axis + rank : axis));
    return axes;
  }

  bool is_reduction(const GraphNode& node, const Names& names) const {
    auto ids = operands(node);
    return is_one_of(node, names) && ids.size() == 1 && !shape(ids[0]).empty();
  }

  // The node that makes a value which nothing else uses; nullptr otherwise.
  const GraphNode* only_maker(int id) const {
    const int producer = uses_.producer(id);
    return producer >= 0 && uses_.users(id).size() == 1 && !uses_.is_output(id) ? &uses_.node(producer) : nullptr;
  }

  // Multiplications and additions of one number, or of numbers a channel (`axis` 1), or a feature (the last).
  bool is_affine(const GraphNode& node) const {
    if (is_one_of(node, {"dropout"})) return false;
    if (!is_one_of(node, kScalings)) return false;
    auto ids = operands(node);
    if (ids.size() == 1) return true;
    const auto& other = uses_.value(ids[1]);
    return other.kind == GraphValue::Kind::parameter || other.kind == GraphValue::Kind::constant;
  }

  const GraphNode* maker_before(const GraphNode* node, bool through_views) const {
    while (node && (is_affine(*node) || (through_views && is_one_of(*node, kViews)))) {
      node = only_maker(operands(*node)[0]);
    }
    return node;
  }

  void look_at_dead(const GraphNode& node) {
    const NodeCost cost = cost_of(uses_, node);
    if (cost.product_flops == 0 && cost.launches == 0) return;
    add(ShortcutKind::dead, node, fmt::format("no output needs what `{}` computes", node.op));
  }

  void look_at_range(const GraphNode& node) {
    const int out = output_of(node);
    auto ids = operands(node);
    if (out < 0 || ids.empty()) return;
    const Range& after = ranges_[static_cast<size_t>(out)];
    const Range& before = ranges_[static_cast<size_t>(ids[0])];
    if (after.is_point()) {
      if (!before.is_point())
        add(ShortcutKind::constant, node,
            fmt::format("`{}` gives {:g} for all inputs and weights", node.op, after.low));
      return;
    }
    const bool clamps = is_one_of(node, {"relu", "clamp", "clamp_min", "clamp_max", "hardtanh", "abs"});
    if (clamps && ids.size() == 1 && before == after && before.is_bounded())
      add(ShortcutKind::no_op, node,
          fmt::format("`{}` changes nothing: its input is in [{:g}, {:g}]", node.op, before.low, before.high));
  }

  void look_at_axes(const GraphNode& node) {
    if (!is_reduction(node, kSelections)) return;
    auto axes = axes_of(node);
    auto& extents = shape(operands(node)[0]);
    const bool ones =
        std::all_of(axes.begin(), axes.end(), [&](size_t a) { return a < extents.size() && extents[a] == 1; });
    if (ones) add(ShortcutKind::no_op, node, fmt::format("`{}` goes over an axis of one element", node.op));
  }

  // mean and sum of a product: of its weights first.
  void look_at_average(const GraphNode& node) {
    const bool pools_all = short_name(node).substr(0, 17) == "adaptive_avg_pool";
    if (!pools_all && !is_reduction(node, kAverages)) return;
    const int operand = operands(node)[0];
    auto& extents = shape(operand);
    std::set<size_t> axes;
    if (pools_all) {
      auto& after = shape(output_of(node));
      for (size_t i = 2; i < extents.size() && i < after.size(); ++i) {
        if (after[i] == 1 && extents[i] > 1) axes.insert(i);
      }
    } else {
      for (size_t axis : axes_of(node)) {
        if (axis < extents.size() && extents[axis] > 1) axes.insert(axis);
      }
    }
    const GraphNode* maker = maker_before(only_maker(operand), false);
    if (!maker || axes.empty()) return;
    const double flops = cost_of(uses_, *maker).product_flops;
    if (is_matrix_product(*maker) && axes.count(extents.size() - 1) != 0) {
      const auto width = static_cast<double>(extents.back());
      add(ShortcutKind::collapse, node,
          fmt::format("`{}` over the features of `{}` is a product with the sum of the weight's rows", node.op,
                      maker->op),
          flops * (1 - 1 / width));
    } else if (is_convolution(*maker) && extents.size() > 2 && *axes.rbegin() >= 2) {
      double share = 1;
      size_t spatial = 0;
      for (size_t axis : axes) {
        if (axis < 2) continue;
        ++spatial;
        share /= static_cast<double>(extents[axis]);
      }
      const bool all = spatial == extents.size() - 2;
      add(all ? ShortcutKind::collapse : ShortcutKind::reduce, node,
          fmt::format("`{}` over {} positions of `{}` is a product with sums of its input", node.op,
                      all ? "all" : "one axis of", maker->op),
          flops * (1 - share));
    }
  }

  void look_at_pool(const GraphNode& node) {
    if (!is_average_pool(node)) return;
    const GraphNode* maker = maker_before(only_maker(operands(node)[0]), true);
    if (!maker) return;
    auto kernel = integers_of(argument_of(node, 1, "kernel_size"));
    double share = 1;
    if (is_convolution(*maker) && !kernel.empty()) {
      auto& weight = shape(operands(*maker)[1]);
      for (size_t i = 2; i < weight.size(); ++i) {
        const auto p = static_cast<double>(kernel[std::min(i - 2, kernel.size() - 1)]),
                   k = static_cast<double>(weight[i]);
        share *= (k + p - 1) / (k * p);
      }
    } else if (is_matrix_product(*maker) && kernel.size() == 1) {
      share = 1 / static_cast<double>(kernel[0]);
    } else if (!is_average_pool(*maker)) {
      return;
    }
    const double flops = cost_of(uses_, *maker).product_flops;
    if (share < 1 || is_average_pool(*maker))
      add(ShortcutKind::reduce, node,
          fmt::format("`{}` after `{}` is one step with {}", node.op, maker->op,
                      is_average_pool(*maker) ? "a larger window" : "averaged weights and a longer stride"),
          flops * (1 - share));
  }

  bool takes_statistics(const GraphNode& node) const {
    auto name = short_name(node);
    if (name != "batch_norm" && name != "instance_norm") return false;
    auto* training = argument_of(node, 5, name == "batch_norm" ? "training" : "use_input_stats");
    auto* flag = training ? std::get_if<bool>(&training->data) : nullptr;
    return flag && *flag;
  }

  void look_at_norm(const GraphNode& node) {
    const bool layer = short_name(node) == "layer_norm";
    if (!layer && !takes_statistics(node)) return;
    const GraphNode* before = only_maker(operands(node)[0]);
    while (before && is_affine(*before)) {
      const bool number = operands(*before).size() == 1;
      const bool shifts = is_one_of(*before, {"add", "sub"});
      if (!layer || (number && shifts))
        add(ShortcutKind::norm_cancels, *before,
            fmt::format("`{}` takes out what `{}` {}", node.op, before->op,
                        shifts ? "adds" : "scales by, but for its sign"));
      before = only_maker(operands(*before)[0]);
    }
    if (!before || layer) return;
    const bool bias = operands(*before).size() > 2;
    if ((is_convolution(*before) || is_matrix_product(*before)) && bias)
      add(ShortcutKind::norm_cancels, *before, fmt::format("`{}` takes out the bias of `{}`", node.op, before->op));
  }

  void look_at_order(const GraphNode& node) {
    const bool largest = is_max_pool(node) || is_reduction(node, {"amax", "max"});
    const bool average = is_average_pool(node) || is_reduction(node, kAverages);
    if (!largest && !average) return;
    auto ids = operands(node);
    const GraphNode* before = only_maker(ids[0]);
    if (!before || operands(*before).empty()) return;
    auto& out = uses_.value(output_of(node));
    if (out.numel() >= uses_.value(ids[0]).numel()) return;
    const bool number = operands(*before).size() == 1;
    const bool scales = is_one_of(*before, {"mul", "div"}), shifts = is_one_of(*before, {"add", "sub"});
    const double factor = number_of(argument_of(*before, 1, "other")).value_or(-1);
    const bool monotone = is_one_of(*before, kMonotone) || (number && (shifts || (scales && factor > 0)));
    const bool linear = number && (shifts || scales);
    const bool merges = is_max_pool(node) && is_max_pool(*before);
    if (merges) {
      add(ShortcutKind::commute, node, "two maximum pools are one with a larger window");
    } else if ((largest && monotone) || (average && linear)) {
      add(ShortcutKind::commute, node,
          fmt::format("`{}` can come before `{}`, which then has fewer elements", node.op, before->op));
    }
  }

  const GraphUses& uses_;
  std::vector<Range> ranges_;
  int index_ = 0;
  std::vector<Shortcut> found_;
};

}  // namespace

std::string_view to_string(ShortcutKind kind) {
  switch (kind) {
    case ShortcutKind::constant:
      return "constant";
    case ShortcutKind::collapse:
      return "collapse";
    case ShortcutKind::reduce:
      return "reduce";
    case ShortcutKind::commute:
      return "commute";
    case ShortcutKind::norm_cancels:
      return "norm_cancels";
    case ShortcutKind::no_op:
      return "no_op";
    case ShortcutKind::dead:
      return "dead";
  }
  return "";
}

std::vector<Shortcut> find_shortcuts(const GraphUses& uses) { return Finder(uses).run(); }

}  // namespace tilepilot::eval
