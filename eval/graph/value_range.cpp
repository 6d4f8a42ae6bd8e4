#include "eval/graph/value_range.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

namespace tilepilot::eval {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Range clamped(const Range& range, double low, double high) {
  return {std::clamp(range.low, low, high), std::clamp(range.high, low, high)};
}

Range image(const Range& range, double (*increasing)(double)) {
  return {increasing(range.low), increasing(range.high)};
}

Range ordered(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return {};
  return {std::min(a, b), std::max(a, b)};
}

class Ranges {
 public:
  explicit Ranges(const GraphUses& uses) : uses_(uses), ranges_(uses.graph().values.size()), same_(ranges_.size()) {
    for (size_t id = 0; id < same_.size(); ++id) same_[id] = static_cast<int>(id);
  }

  std::vector<Range> run() {
    for (auto& node : uses_.graph().nodes) {
      const int out = node.outputs.empty() ? -1 : node.outputs[0];
      auto ids = operands(node);
      if (out < 0 || !uses_.value(out).is_tensor || ids.empty()) continue;
      const Range range = range_of(node, ids);
      if (is_in_place(node)) forget(uses_.storage(ids[0]));
      if (keeps_elements(node, ids)) same_[static_cast<size_t>(out)] = same_[static_cast<size_t>(ids[0])];
      ranges_[static_cast<size_t>(out)] = range;
    }
    return std::move(ranges_);
  }

 private:
  const Range& range(int id) const { return ranges_[static_cast<size_t>(id)]; }

  // Its values are written: what was known of them holds no longer.
  void forget(int storage) {
    for (size_t id = 0; id < ranges_.size(); ++id) {
      if (uses_.storage(static_cast<int>(id)) != storage) continue;
      ranges_[id] = {};
      same_[id] = static_cast<int>(id);
    }
  }

  bool is_view(const GraphNode& node) const {
    static const std::set<std::string_view> names = {"view",    "reshape", "permute", "transpose", "unsqueeze",
                                                     "squeeze", "flatten", "slice",   "select",    "expand",
                                                     "clone",   "to",      "alias",   "detach",    "contiguous"};
    return names.count(short_name(node)) != 0;
  }

  // A reduction over axes of one element gives its input.
  bool keeps_elements(const GraphNode& node, const std::vector<int>& ids) const {
    if (ids.size() != 1) return false;
    auto name = plain_name(node);
    const bool reduces =
        name == "mean" || name == "sum" || name == "amax" || name == "amin" || name == "max" || name == "min";
    return reduces && uses_.value(ids[0]).numel() == uses_.value(node.outputs[0]).numel();
  }

  Range range_of(const GraphNode& node, const std::vector<int>& ids) const {
    const Range& x = range(ids[0]);
    if (ids.size() == 1) return of_one(node, x);
    auto name = plain_name(node);
    const Range& y = range(ids[1]);
    if (name == "sub" && same_[static_cast<size_t>(ids[0])] == same_[static_cast<size_t>(ids[1])] &&
        uses_.value(ids[0]).numel() == uses_.value(ids[1]).numel() && node.kwargs.empty() && node.args.size() < 3)
      return {0, 0};
    if (name == "minimum" || name == "min") return {std::min(x.low, y.low), std::min(x.high, y.high)};
    if (name == "maximum" || name == "max") return {std::max(x.low, y.low), std::max(x.high, y.high)};
    return {};
  }

  Range of_one(const GraphNode& node, const Range& x) const {
    auto name = plain_name(node);
    auto number = [&](size_t position, std::string_view keyword, double otherwise) {
      return number_of(argument_of(node, position, keyword)).value_or(otherwise);
    };
    if (is_view(node) || keeps_elements(node, operands(node)) || name.substr(0, 8) == "max_pool") return x;
    if (name == "relu") return clamped(x, 0, kInfinity);
    if (name == "clamp" || name == "hardtanh") {
      const bool hard = name == "hardtanh";
      return clamped(x, number(1, hard ? "min_val" : "min", hard ? -1 : -kInfinity),
                     number(2, hard ? "max_val" : "max", hard ? 1 : kInfinity));
    }
    if (name == "clamp_min") return clamped(x, number(1, "min", -kInfinity), kInfinity);
    if (name == "clamp_max") return clamped(x, -kInfinity, number(1, "max", kInfinity));
    if (name == "sigmoid" || name == "softmax" || name == "hardsigmoid") return {0, 1};
    if (name == "tanh") return image(x, [](double v) { return std::tanh(v); });
    if (name == "abs" || name == "square") return {x.low > 0 ? (name == "abs" ? x.low : x.low * x.low) : 0, kInfinity};
    if (name == "softplus" || name == "exp") return {0, kInfinity};
    if (name == "dropout") return scaled_dropout(x, number(1, "p", 0.5));
    if (name == "gelu" || name == "silu" || name == "mish") return x.low == 0 && x.high == 0 ? x : smooth(name, x);
    if (name == "add" || name == "sub" || name == "mul" || name == "div") return arithmetic(name, node, x);
    return {};
  }

  // Below zero these reach a little under it; above they stay above.
  static Range smooth(std::string_view name, const Range& x) {
    const double lowest = name == "gelu" ? -0.171 : name == "silu" ? -0.279 : -0.309;
    return {x.low >= 0 ? 0 : lowest, x.high <= 0 ? 0 : x.high};
  }

  static Range scaled_dropout(const Range& x, double share) {
    if (share >= 1) return {0, 0};
    const double scale = 1 / (1 - share);
    return {std::min(0.0, x.low * scale), std::max(0.0, x.high * scale)};
  }

  static Range arithmetic(std::string_view name, const GraphNode& node, const Range& x) {
    auto other = number_of(argument_of(node, 1, "other"));
    const bool plain = argument_of(node, 2, "alpha") == nullptr && argument_of(node, 2, "rounding_mode") == nullptr;
    if (!other || !plain) return {};
    if (name == "add") return ordered(x.low + *other, x.high + *other);
    if (name == "sub") return ordered(x.low - *other, x.high - *other);
    if (name == "mul") return ordered(x.low * *other, x.high * *other);
    return *other == 0 ? Range{} : ordered(x.low / *other, x.high / *other);
  }

  const GraphUses& uses_;
  std::vector<Range> ranges_;
  std::vector<int> same_;  // the value whose elements this one has
};

}  // namespace

std::vector<Range> value_ranges(const GraphUses& uses) { return Ranges(uses).run(); }

}  // namespace tilepilot::eval
