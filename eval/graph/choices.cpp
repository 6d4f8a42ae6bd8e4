#include "eval/graph/choices.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {
namespace {

using Set = std::set<std::string_view>;

bool is_stable(const GraphNode& node) {
  const auto* stable = node.overload == "stable" ? argument_of(node, 1, "stable") : nullptr;
  return stable && std::holds_alternative<bool>(stable->data) && std::get<bool>(stable->data);
}

// The first of equals, or in a running search the last.
bool gives_known_place(const GraphNode& node) {
  const std::string_view name = plain_name(node);
  if (name == "argmax" || name == "argmin" || name == "cummax" || name == "cummin") return true;
  return (name == "max" || name == "min") && node.outputs.size() > 1 && node.outputs[1] >= 0;
}

class Choices {
 public:
  explicit Choices(const Graph& graph)
      : graph_(graph), uses_(graph), open_(graph.values.size()), rounded_(graph.values.size()) {}

  std::vector<bool> run() {
    for (const GraphNode& node : graph_.nodes) visit(node);
    std::vector<bool> outputs;
    for_each_value(graph_.outputs, [&](int id) {
      if (uses_.value(id).is_tensor) outputs.push_back(open_[memory_of(id)]);
    });
    return outputs;
  }

 private:
  size_t memory_of(int id) const { return static_cast<size_t>(uses_.storage(id)); }

  void visit(const GraphNode& node) {
    static const Set kExact = {"reshape",      "flatten",   "contiguous", "clone",   "cat",        "stack",
                               "flip",         "roll",      "gather",     "relu",    "neg",        "abs",
                               "clamp",        "clamp_min", "maximum",    "minimum", "clamp_max",  "hardtanh",
                               "index_select", "max",       "min",        "amax",    "amin",       "masked_fill",
                               "where",        "topk",      "sort",       "pad",     "max_pool1d", "max_pool2d"};
    const auto ids = operands(node);
    const auto any = [&](const std::vector<bool>& which) {
      return std::any_of(ids.begin(), ids.end(), [&](int id) { return which[memory_of(id)]; });
    };
    const std::string_view name = plain_name(node);
    const bool is_exact = always_views(name) || kExact.count(name) != 0;
    const bool open = any(open_), rounded = any(rounded_) || !is_exact;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const int id = node.outputs[i];
      if (id < 0) continue;
      const size_t memory = memory_of(id);
      open_[memory] = open_[memory] || open || chooses(node, i, any(rounded_));
      rounded_[memory] = rounded_[memory] || rounded;
    }
    // Written arguments.
    if (is_in_place(node) && !ids.empty()) {
      open_[memory_of(ids[0])] = open_[memory_of(ids[0])] || open;
      rounded_[memory_of(ids[0])] = true;
    }
  }

  // Whether it is open what an operator puts into an output where elements of its operand are equal. What was rounded
  // may be equal here and not there.
  static bool chooses(const GraphNode& node, size_t output, bool rounded) {
    static const Set kAny = {"argsort", "unique", "_unique2", "mode"};
    static const Set kAnyBeside = {"topk",
                                   "sort",
                                   "kthvalue",
                                   "median",
                                   "max_pool2d_with_indices",
                                   "max_pool3d_with_indices",
                                   "adaptive_max_pool2d",
                                   "adaptive_max_pool3d"};
    const std::string_view name = plain_name(node);
    if (is_stable(node)) return false;
    if (gives_known_place(node)) return rounded && output + 1 == node.outputs.size();
    return kAny.count(name) != 0 || (output > 0 && kAnyBeside.count(name) != 0);
  }

  const Graph& graph_;
  GraphUses uses_;
  std::vector<bool> open_, rounded_;  // by the value whose memory it is
};

}  // namespace

bool keeps_order(const GraphNode& node) { return is_stable(node) || gives_known_place(node); }

std::vector<bool> open_outputs(const Graph& graph) { return Choices(graph).run(); }

}  // namespace tilepilot::eval
