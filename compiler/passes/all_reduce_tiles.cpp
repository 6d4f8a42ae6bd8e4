#include "compiler/passes/all_reduce_tiles.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/visit.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

std::optional<ReduceOp> as_reduction(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return ReduceOp::sum;
    case BinaryOp::max:
      return ReduceOp::max;
    case BinaryOp::min:
      return ReduceOp::min;
    case BinaryOp::bit_and:
      return ReduceOp::bit_and;
    case BinaryOp::bit_or:
      return ReduceOp::bit_or;
    case BinaryOp::bit_xor:
      return ReduceOp::bit_xor;
    default:
      return std::nullopt;
  }
}

class Lowering : public Rewriter {
 public:
  explicit Lowering(const Kernel& kernel) : kernel_(kernel) {}
  using Rewriter::rewrite;

  Kernel run() {
    Kernel result = kernel_;
    result.body = rewrite(kernel_.body);
    result.allocations.insert(result.allocations.end(), tiles_.begin(), tiles_.end());
    return result;
  }

  Stmt rewrite(const Stmt& s) override {
    const auto* n = as<AllReduce>(s);
    return n ? lowered(*n, s->span) : rewrite_children(s);
  }

 private:
  const Kernel& kernel_;
  std::vector<Buffer> tiles_;

  // A thread's place in its group, and the number of its group.
  struct Place {
    Expr index = int_imm(0);
    int64_t extent = 1;
    void add(const Var& thread, int64_t threads) {
      const Expr step = cast(var_ref(thread), kInt32);
      index = extent == 1 ? step : binary(BinaryOp::add, index, binary(BinaryOp::mul, step, int_imm(extent)));
      extent *= threads;
    }
  };

  Buffer tile(const char* name, DType type, std::vector<int64_t> extents, Span span) {
    BufferData data{name, type, Scope::shared, {}, {}, span, nullptr};
    for (const int64_t extent : extents) data.shape.push_back(int_imm(extent));
    tiles_.push_back(std::make_shared<BufferData>(std::move(data)));
    return tiles_.back();
  }

  Stmt lowered(const AllReduce& n, Span span) {
    Place group, member;
    for (size_t axis = 0; axis < kernel_.threads.size(); ++axis) {
      const bool reduced = std::find(n.axes.begin(), n.axes.end(), int(axis)) != n.axes.end();
      (reduced ? member : group).add(kernel_.thread_vars[axis], kernel_.threads[axis]);
    }
    const DType type = n.result.buffer->type;
    const Buffer values = tile("values", type, {group.extent, member.extent}, span);
    const Buffer totals = tile("totals", type, {group.extent}, span);
    const Expr value = constant_int(n.condition) == 1 ? n.value : select(n.condition, n.value, n.identity, span);
    const Stmt give = make_stmt(Store{values, {group.index, member.index}, value}, span);
    const Stmt take = make_stmt(Store{n.result.buffer, n.result.start, load(totals, {group.index}, span)}, span);
    return make_stmt(Block{{give, reduction(n, values, totals, span), take}}, span);
  }

  static Stmt reduction(const AllReduce& n, const Buffer& values, const Buffer& totals, Span span) {
    const int64_t groups = *constant_int(values->shape[0]), members = *constant_int(values->shape[1]);
    if (const auto op = as_reduction(n.op)) {
      const Region source{values, {int_imm(0), int_imm(0)}, {groups, members}, span};
      return make_stmt(Reduce{*op, source, {totals, {int_imm(0)}, {groups}, span}, 1, true}, span);
    }
    const Var group = make_var("group", kInt32), member = make_var("member", kInt32);
    const Expr g = var_ref(group), total = load(totals, {g}, span);
    const Expr later = binary(BinaryOp::add, var_ref(member), int_imm(1), span);
    const Expr next = binary(n.op, total, load(values, {g, later}, span), span);
    const Stmt step = make_stmt(Store{totals, {g}, next}, span);
    Block body{{make_stmt(Store{totals, {g}, load(values, {g, int_imm(0)}, span)}, span),
                make_stmt(For{LoopKind::serial, {member}, {int_imm(members - 1)}, 0, step}, span)}};
    return make_stmt(For{LoopKind::parallel, {group}, {int_imm(groups)}, 0, make_stmt(std::move(body), span)}, span);
  }
};

}  // namespace

Kernel all_reduces_through_tiles(const Kernel& kernel) { return Lowering(kernel).run(); }

}  // namespace tilepilot::passes
