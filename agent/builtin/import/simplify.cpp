#include "agent/builtin/import/simplify.h"

#include <algorithm>

namespace tilepilot::agent::builtin {

namespace {

class Rewrite {
 public:
  explicit Rewrite(const PrimitiveGraph& graph) : graph_(graph), users_(graph.users()), build_(result_) {}

  PrimitiveGraph run() {
    for (size_t id = 0; id < graph_.nodes.size(); ++id) moved_.push_back(move(static_cast<int>(id)));
    result_.value_of = graph_.value_of;
    for (int& id : result_.value_of) id = renumbered(id);
    for (int id : graph_.outputs) result_.outputs.push_back(renumbered(id));
    for (auto [before, after] : graph_.order) result_.order.emplace_back(renumbered(before), renumbered(after));
    result_.drop_dead();
    return std::move(result_);
  }

 private:
  const PrimitiveGraph& graph_;
  std::vector<std::vector<int>> users_;
  PrimitiveGraph result_;
  PrimitiveBuilder build_;
  std::vector<int> moved_;

  int renumbered(int id) const { return id < 0 ? -1 : moved_[static_cast<size_t>(id)]; }

  int move(int id) {
    const Primitive& p = graph_.at(id);
    build_.set_origin(p.origin);
    if (p.kind == Primitive::Kind::reduce && p.reduction == ReduceOp::sum && p.axes.size() == 1 &&
        leads_to_product(p.args[0], p.axes[0]))
      return sum(p.args[0], p.axes[0]);
    bool slices = p.kind == Primitive::Kind::view && p.view.kind == ViewOp::Kind::slice;
    if (slices && only_pieces_used(p.args[0]))
      return slice(p.args[0], p.view, p.shape[static_cast<size_t>(p.view.axis)]);
    Primitive copy = p;
    for (int& arg : copy.args) arg = renumbered(arg);
    return build_.add(std::move(copy));
  }

  bool is_output(int id) const { return std::count(graph_.outputs.begin(), graph_.outputs.end(), id) > 0; }

  // A map that is only looked at in pieces.
  bool only_pieces_used(int id) const {
    if (graph_.at(id).kind != Primitive::Kind::map || is_output(id)) return false;
    auto& users = users_[static_cast<size_t>(id)];
    return std::all_of(users.begin(), users.end(), [&](int user) {
      const Primitive& p = graph_.at(user);
      return p.kind == Primitive::Kind::view && p.view.kind == ViewOp::Kind::slice;
    });
  }

  int slice(int id, const ViewOp& view, int64_t length) {
    const Primitive& p = graph_.at(id);
    std::vector<int> args;
    for (int operand : p.args) {
      const Shape& shape = graph_.at(operand).shape;
      auto missing = static_cast<int64_t>(p.shape.size() - shape.size());
      bool whole = view.axis < missing || shape[static_cast<size_t>(view.axis - missing)] == 1;
      ViewOp own = view;
      own.axis -= missing;
      bool inner = graph_.at(operand).kind == Primitive::Kind::map && only_use(operand);
      if (whole)
        args.push_back(renumbered(operand));
      else
        args.push_back(inner ? slice(operand, own, length) : build_.slice(renumbered(operand), own, length));
    }
    build_.set_origin(p.origin);  // a piece of what that operator computes
    if (p.op == ScalarOp::cast) return build_.cast(args[0], p.dtype);
    return build_.map(p.op, args, p.hint);
  }

  static int64_t extent(const Primitive& p, size_t rank, int axis) {
    size_t missing = rank - p.shape.size();
    return static_cast<size_t>(axis) < missing ? 1 : p.shape[static_cast<size_t>(axis) - missing];
  }

  bool only_use(int id) const { return users_[static_cast<size_t>(id)].size() == 1 && !is_output(id); }

  // True if the sum of `id` over `axis` can be taken before a product that nobody else needs.
  bool leads_to_product(int id, int axis) const {
    const Primitive& p = graph_.at(id);
    if (!only_use(id)) return false;
    if (p.kind == Primitive::Kind::product) {
      bool columns = axis == static_cast<int>(p.shape.size()) - 1;
      return columns || graph_.at(p.args[1]).shape.size() == 2;
    }
    if (p.kind != Primitive::Kind::map) return false;
    if (p.op == ScalarOp::neg) return leads_to_product(p.args[0], axis);
    if (p.args.size() != 2 || extent(graph_.at(p.args[0]), p.shape.size(), axis) == 1) return false;
    const Primitive& other = graph_.at(p.args[1]);
    if (p.op == ScalarOp::add || p.op == ScalarOp::sub) return leads_to_product(p.args[0], axis);
    bool scale = p.op == ScalarOp::mul || p.op == ScalarOp::div;
    return scale && extent(other, p.shape.size(), axis) == 1 && leads_to_product(p.args[0], axis);
  }

  int sum(int id, int axis) {
    const Primitive& p = graph_.at(id);
    if (p.kind == Primitive::Kind::product) return sum_product(p, axis);
    int inner = sum(p.args[0], axis);
    if (p.op == ScalarOp::neg) return build_.map(ScalarOp::neg, {inner});
    int other = renumbered(p.args[1]);
    if (p.op == ScalarOp::add || p.op == ScalarOp::sub) other = sum_operand(other, p.shape, axis);
    return build_.map(p.op, {inner, other});
  }

  // The sum over `axis` of an operand stretched to `shape`.
  int sum_operand(int operand, const Shape& shape, int axis) {
    int64_t count = shape[static_cast<size_t>(axis)];
    if (extent(build_.at(operand), shape.size(), axis) == 1)
      return build_.map(ScalarOp::mul, {operand, build_.constant(static_cast<double>(count))});
    int own = axis - static_cast<int>(shape.size() - build_.at(operand).shape.size());
    return build_.reduce(ReduceOp::sum, operand, {own}, "total");
  }

  int sum_product(const Primitive& p, int axis) {
    int a = renumbered(p.args[0]), b = renumbered(p.args[1]);
    int last = static_cast<int>(p.shape.size()) - 1;
    if (axis == last) {
      int columns = build_.reduce(ReduceOp::sum, b, {static_cast<int>(build_.at(b).shape.size()) - 2}, "column_sums");
      return build_.reduce(ReduceOp::sum, build_.map(ScalarOp::mul, {a, columns}, "products"), {last}, "dot");
    }
    Shape shape = p.shape;
    shape[static_cast<size_t>(axis)] = 1;
    return build_.product(build_.reduce(ReduceOp::sum, a, {axis}, "row_sums"), b, shape);
  }
};

}  // namespace

PrimitiveGraph simplify(const PrimitiveGraph& graph) { return Rewrite(graph).run(); }

}  // namespace tilepilot::agent::builtin
