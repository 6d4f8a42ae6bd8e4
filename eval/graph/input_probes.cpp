#include "eval/graph/input_probes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {
namespace {

using Set = std::set<std::string_view>;

// One element of many, by its size.
bool chooses_by_size(const GraphNode& node) {
  static const Set kNames = {"max",          "min",     "amax", "amin",    "argmax",   "argmin", "cummax",
                             "cummin",       "aminmax", "topk", "argsort", "kthvalue", "median", "scatter_reduce",
                             "index_reduce", "sort",    "mode", "msort"};
  const std::string_view name = plain_name(node);
  if (node.overload == "other") return false;  // the larger of two tensors, element by element
  return kNames.count(name) != 0 || name.starts_with("max_pool") || name.starts_with("adaptive_max_pool") ||
         name.starts_with("fractional_max_pool");
}

bool shares_by_exponentials(const GraphNode& node) {
  static const Set kNames = {"softmax",   "_softmax",     "log_softmax",        "_log_softmax",
                             "logsumexp", "logcumsumexp", "cross_entropy_loss", "scaled_dot_product_attention"};
  return kNames.count(plain_name(node)) != 0;
}

bool is_exponential(const GraphNode& node) {
  static const Set kNames = {"exp", "exp2", "expm1", "logaddexp", "logaddexp2", "log", "log2", "pow"};
  return shares_by_exponentials(node) || kNames.count(plain_name(node)) != 0;
}

bool is_product(const GraphNode& node) {
  static const Set kNames = {"linear",  "matmul", "mm",        "bmm",    "addmm",
                             "baddbmm", "addbmm", "mv",        "addmv",  "dot",
                             "inner",   "vdot",   "bilinear",  "einsum", "lstm",
                             "gru",     "cdist",  "tensordot", "outer",  "scaled_dot_product_attention"};
  const std::string_view name = plain_name(node);
  return kNames.count(name) != 0 || name.starts_with("conv") || name == "_convolution";
}

// A number that stands for one below or above all others: a program may have infinity in its place.
bool has_fill(const GraphNode& node) {
  static const Set kNames = {"masked_fill", "where", "full", "full_like", "new_full",        "fill",         "mul",
                             "add",         "sub",   "rsub", "pad",       "constant_pad_nd", "scalar_tensor"};
  constexpr double kLeast = 1e3, kMost = 1e30;
  if (kNames.count(plain_name(node)) == 0) return false;
  const auto is_far = [](const GraphArgument& argument) {
    const double size = std::abs(number_of(&argument).value_or(0));
    return size >= kLeast && size <= kMost;
  };
  return std::any_of(node.args.begin(), node.args.end(), is_far) ||
         std::any_of(node.kwargs.begin(), node.kwargs.end(), [&](auto& each) { return is_far(each.second); });
}

class Probes {
 public:
  explicit Probes(const Graph& graph) : graph_(graph) {}

  InputProbes run() const {
    InputProbes probes;
    const bool shares = any(shares_by_exponentials), chooses = any(chooses_by_size);
    probes.opposite = shares || chooses;
    // Where programs multiply and add in one step, the exponent of numbers beyond 2^30, less the largest of them, is
    // off by more than a float32 can hold. Layers make numbers larger, and products of inputs much larger.
    const bool has_exponentials = any(is_exponential);
    const bool may_be_far = !any(has_fill) && !(has_exponentials && multiplies_inputs());
    const std::vector<int> far = !has_exponentials ? std::vector{34, 27, 20}
                                 : any(is_product) ? std::vector{16, 13}
                                                   : std::vector{27, 20};
    if (may_be_far && (shares || chooses)) probes.below = far;
    // Behind a layer scores may be of either sign.
    if (may_be_far && (chooses || (shares && any(is_product)))) probes.above = far;
    if (any([](const GraphNode& node) { return plain_name(node) == "hypot"; })) {
      probes.beyond_squares = {70};
      probes.below_squares = {80};
    }
    if (rounds_floats() && !converts_to_small_integers()) probes.beyond_integers = {34};
    probes.steps = steps();
    return probes;
  }

 private:
  const Graph& graph_;

  template <typename Is>
  bool any(Is is) const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), is);
  }

  std::string_view type_of(int id) const { return graph_.values[static_cast<size_t>(id)].dtype; }
  bool is_floating(int id) const { return type_of(id).find("float") != std::string_view::npos; }

  bool takes_floats(const GraphNode& node) const {
    const auto ids = operands(node);
    return !ids.empty() && is_floating(ids[0]);
  }

  bool rounds_floats() const {
    static const Set kNames = {"floor", "ceil", "round", "trunc", "fix", "frac", "fmod", "remainder", "floor_divide"};
    return any([&](const GraphNode& node) {
      const bool divides = plain_name(node) == "div" && argument_of(node, 2, "rounding_mode") != nullptr;
      return (divides || kNames.count(plain_name(node)) != 0) && takes_floats(node);
    });
  }

  // What does not fit is undefined there.
  bool converts_to_small_integers() const {
    return any([&](const GraphNode& node) {
      if (!takes_floats(node) || node.outputs.empty() || node.outputs[0] < 0) return false;
      const std::string_view made = type_of(node.outputs[0]);
      return made.find("int") != std::string_view::npos && made != "int64";
    });
  }

  // With each other, not with weights.
  bool multiplies_inputs() const {
    std::set<int> made(graph_.inputs.begin(), graph_.inputs.end());
    for (const GraphNode& node : graph_.nodes) {
      const auto ids = operands(node);
      const auto from_inputs = std::count_if(ids.begin(), ids.end(), [&](int id) { return made.count(id) != 0; });
      if (from_inputs > 1 && is_product(node)) return true;
      if (from_inputs > 0) made.insert(node.outputs.begin(), node.outputs.end());
    }
    return false;
  }

  // The number that a scale made from inputs is divided by, or multiplied with: the first one is nearest to them. Where
  // a scale is not a power of two, roundings decide about numbers halfway, and programs that are right differ.
  int steps() const {
    constexpr double kFewest = 3, kMost = 1 << 16, kNear = 1e-4;
    constexpr int kUsual = 8;
    if (!any([](const GraphNode& node) { return plain_name(node) == "round"; })) return 0;
    std::set<int> made(graph_.inputs.begin(), graph_.inputs.end());
    int64_t most = 0;
    for (const int id : graph_.inputs) most = std::max(most, elements_of(id));
    for (const GraphNode& node : graph_.nodes) {
      const auto ids = operands(node);
      if (std::none_of(ids.begin(), ids.end(), [&](int id) { return made.count(id) != 0; })) continue;
      made.insert(node.outputs.begin(), node.outputs.end());
      const bool scales = plain_name(node) == "div" || plain_name(node) == "mul";
      if (!scales || ids.size() != 1 || 2 * elements_of(ids[0]) > most) continue;
      const double number = std::abs(number_of(argument_of(node, 1, "other")).value_or(0));
      for (const double steps : {number, number > 0 ? 1 / number : 0}) {
        const double whole = std::round(steps);
        if (whole >= kFewest && whole <= kMost && std::abs(steps - whole) <= kNear * whole)
          return static_cast<int>(whole);
      }
    }
    return kUsual;
  }

  int64_t elements_of(int id) const { return graph_.values[static_cast<size_t>(id)].numel(); }
};

}  // namespace

InputProbes input_probes(const Graph& forward) { return Probes(forward).run(); }

}  // namespace tilepilot::eval
