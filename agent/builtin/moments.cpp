#include "agent/builtin/moments.h"

#include <algorithm>
#include <optional>

namespace tilepilot::agent::builtin {

namespace {

// What reshapes that cancel out look at.
int unshaped(const PrimitiveGraph& graph, int id) {
  int base = id;
  while (graph.at(base).kind == Primitive::Kind::view && graph.at(base).view.kind == ViewOp::Kind::reshape)
    base = graph.at(base).args[0];
  return graph.at(base).shape == graph.at(id).shape ? base : id;
}

// Of a sum of squares of something less the mean of the same.
std::optional<Moments> moments_of(const PrimitiveGraph& graph, const Group& group, int squares) {
  const auto is_member = [&](int id) { return std::count(group.members.begin(), group.members.end(), id) > 0; };
  const auto is_map = [&](int id, ScalarOp op) {
    const Primitive& p = graph.at(id);
    return is_member(id) && p.kind == Primitive::Kind::map && p.op == op && p.args.size() == 2;
  };
  const auto is_sum = [&](int id) {
    const Primitive& p = graph.at(id);
    return is_member(id) && p.kind == Primitive::Kind::reduce && p.reduction == ReduceOp::sum;
  };
  const auto operand = [&](int id, size_t at) { return unshaped(graph, graph.at(id).args[at]); };
  if (!is_sum(squares)) return std::nullopt;
  const int square = operand(squares, 0);
  if (!is_map(square, ScalarOp::mul) || operand(square, 0) != operand(square, 1)) return std::nullopt;
  const int centered = operand(square, 0);
  if (!is_map(centered, ScalarOp::sub)) return std::nullopt;
  const int value = operand(centered, 0), mean = operand(centered, 1);
  if (!is_map(mean, ScalarOp::div)) return std::nullopt;
  const int sum = operand(mean, 0), length = operand(mean, 1);
  if (!is_sum(sum) || graph.at(length).kind != Primitive::Kind::constant || operand(sum, 0) != value)
    return std::nullopt;
  const Primitive &total = graph.at(sum), &all = graph.at(squares);
  if (total.axes != all.axes || total.dtype != all.dtype) return std::nullopt;
  double count = 1;
  for (const int axis : total.axes) count *= static_cast<double>(graph.at(value).shape[static_cast<size_t>(axis)]);
  if (graph.at(length).number != count) return std::nullopt;
  return Moments{value, sum, mean, squares};
}

}  // namespace

std::vector<Moments> find_moments(const PrimitiveGraph& graph, const Group& group) {
  std::vector<Moments> found;
  for (const int id : group.members)
    if (const auto moments = moments_of(graph, group, id)) found.push_back(*moments);
  return found;
}

bool may_count_steps(const TilePlan& tiles) {
  if (tiles.resident()) return false;
  // The outermost loop ends but once; places that another one leaves out have a count of their own.
  std::vector<int> inner = tiles.serial;
  for (const int loop : {tiles.row, tiles.column})
    if (loop >= 0 && tiles.loop(loop).reduced && !tiles.whole(loop)) inner.push_back(loop);
  if (!inner.empty()) inner.erase(inner.begin());
  const std::vector<int> ragged = tiles.ragged();
  return std::count_if(inner.begin(), inner.end(),
                       [&](int loop) { return std::count(ragged.begin(), ragged.end(), loop) > 0; }) <= 1;
}

}  // namespace tilepilot::agent::builtin
