#include "agent/builtin/one_pass.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tilepilot::agent::builtin {

namespace {

// What reshapes that cancel out look at.
int unshaped(const PrimitiveGraph& graph, int id) {
  int base = id;
  while (graph.at(base).kind == Primitive::Kind::view && graph.at(base).view.kind == ViewOp::Kind::reshape)
    base = graph.at(base).args[0];
  return graph.at(base).shape == graph.at(id).shape ? base : id;
}

class Finder {
 public:
  Finder(const PrimitiveGraph& graph, const Group& group) : graph_(graph), group_(group) {}

  // Of a sum of squares of something less the mean of the same.
  std::optional<OnePass> moments_of(int squares) const {
    if (!is_reduction(squares, ReduceOp::sum)) return std::nullopt;
    const int square = operand(squares, 0);
    if (!is_map(square, ScalarOp::mul, 2) || operand(square, 0) != operand(square, 1)) return std::nullopt;
    const int centered = operand(square, 0);
    if (!is_map(centered, ScalarOp::sub, 2)) return std::nullopt;
    const int value = operand(centered, 0), mean = operand(centered, 1);
    if (!is_map(mean, ScalarOp::div, 2)) return std::nullopt;
    const int sum = operand(mean, 0), length = operand(mean, 1);
    if (!is_of(sum, ReduceOp::sum, value, squares) || graph_.at(length).kind != Primitive::Kind::constant)
      return std::nullopt;
    double count = 1;
    for (const int axis : graph_.at(sum).axes)
      count *= static_cast<double>(graph_.at(value).shape[static_cast<size_t>(axis)]);
    if (graph_.at(length).number != count) return std::nullopt;
    return OnePass{OnePass::Kind::moments, value, sum, squares, mean};
  }

  // Of a sum of exponentials of something less the maximum of the same. Where a NaN or two infinities are, the sum is
  // NaN, and the maximum may be another one: nothing outside may depend on the maximum alone.
  std::optional<OnePass> exponentials_of(int total) const {
    if (!is_reduction(total, ReduceOp::sum)) return std::nullopt;
    const int power = operand(total, 0);
    if (!is_map(power, ScalarOp::exp, 1)) return std::nullopt;
    const int shifted = operand(power, 0);
    if (!is_map(shifted, ScalarOp::sub, 2)) return std::nullopt;
    const int value = operand(shifted, 0), highest = operand(shifted, 1);
    if (!is_of(highest, ReduceOp::max, value, total)) return std::nullopt;
    const std::set<int> of_highest = dependent_on(highest), of_total = dependent_on(total);
    for (const int output : group_.outputs)
      if (of_highest.count(output) > of_total.count(output)) return std::nullopt;
    return OnePass{OnePass::Kind::exponentials, value, highest, total, -1};
  }

 private:
  const PrimitiveGraph& graph_;
  const Group& group_;

  bool is_member(int id) const { return std::count(group_.members.begin(), group_.members.end(), id) > 0; }
  bool is_map(int id, ScalarOp op, size_t operands) const {
    const Primitive& p = graph_.at(id);
    return is_member(id) && p.kind == Primitive::Kind::map && p.op == op && p.args.size() == operands;
  }
  bool is_reduction(int id, ReduceOp op) const {
    const Primitive& p = graph_.at(id);
    return is_member(id) && p.kind == Primitive::Kind::reduce && p.reduction == op;
  }
  // Whether it reduces `value` along the same axes as another one.
  bool is_of(int id, ReduceOp op, int value, int other) const {
    return is_reduction(id, op) && operand(id, 0) == value && graph_.at(id).axes == graph_.at(other).axes &&
           graph_.at(id).dtype == graph_.at(other).dtype;
  }
  int operand(int id, size_t at) const { return unshaped(graph_, graph_.at(id).args[at]); }
  // Members that need it, itself among them.
  std::set<int> dependent_on(int on) const {
    std::set<int> found{on};
    for (const int id : group_.members) {
      const auto& args = graph_.at(id).args;
      if (std::any_of(args.begin(), args.end(), [&](int arg) { return found.count(arg) > 0; })) found.insert(id);
    }
    return found;
  }
};

}  // namespace

std::vector<OnePass> find_one_pass(const PrimitiveGraph& graph, const Group& group) {
  const Finder finder(graph, group);
  std::vector<OnePass> found;
  for (const int id : group.members) {
    if (const auto moments = finder.moments_of(id)) found.push_back(*moments);
    if (const auto exponentials = finder.exponentials_of(id)) found.push_back(*exponentials);
  }
  return found;
}

bool may_count_steps(const TilePlan& tiles) {
  const std::vector<int> stepped = tiles.stepped(), ragged = tiles.ragged();
  if (stepped.empty()) return false;
  // The outermost loop ends but once; places that another one leaves out have a count of their own.
  return std::count_if(stepped.begin() + 1, stepped.end(),
                       [&](int loop) { return std::count(ragged.begin(), ragged.end(), loop) > 0; }) <= 1;
}

}  // namespace tilepilot::agent::builtin
