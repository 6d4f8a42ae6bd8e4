#include "compiler/targets/gpu/facts/loop_unswitching.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/bounds.h"
#include "compiler/ir/search.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

bool is_infinite(const Expr& value) {
  const auto* number = ir::as<ir::FloatImm>(value);
  return number && std::isinf(number->value);
}

// Comparisons of sums of a parallel loop's variables, at the element that decides for all.
class Deciding {
 public:
  Deciding(const ir::For& loop, const ir::VarRanges& ranges) : loop_(loop), ranges_(ranges) {}

  // Whether all elements have `wanted` for the condition, as an expression without the loop's variables; null if there
  // is none that is so simple.
  Expr of(const Expr& condition, bool wanted) const {
    const auto* node = ir::as<ir::Binary>(condition);
    if (node == nullptr) return nullptr;
    if (node->op == BinaryOp::logical_and || node->op == BinaryOp::logical_or) {
      // Both must hold for all elements, or neither for any.
      if ((node->op == BinaryOp::logical_and) != wanted) return nullptr;
      const Expr left = of(node->left, wanted), right = of(node->right, wanted);
      return left && right ? ir::binary(BinaryOp::logical_and, left, right, condition->span) : nullptr;
    }
    const bool greater = node->op == BinaryOp::ge || node->op == BinaryOp::gt;
    if (!greater && node->op != BinaryOp::le && node->op != BinaryOp::lt) return nullptr;
    if (!node->left->type.is_int()) return nullptr;
    const Expr at = corner(*node, greater == wanted);
    if (!at) return nullptr;
    return wanted ? at : ir::unary(ir::UnaryOp::logical_not, at, condition->span);
  }

 private:
  const ir::For& loop_;
  const ir::VarRanges& ranges_;

  // The comparison where left - right is least, or largest; null unless both are sums that do not wrap.
  Expr corner(const ir::Binary& node, bool least) const {
    const auto left = ir::affine(node.left), right = ir::affine(node.right);
    if (!left || !right || ir::may_wrap(node.left, ranges_) || ir::may_wrap(node.right, ranges_)) return nullptr;
    const auto at_corner = [&](const ir::Var& var) -> Expr {
      for (size_t axis = 0; axis < loop_.vars.size(); ++axis) {
        if (loop_.vars[axis] != var) continue;
        const bool grows = left->coefficient(var) >= right->coefficient(var);
        return ir::int_imm(grows == least ? 0 : *ir::constant_int(loop_.extents[axis]) - 1, var->type);
      }
      return nullptr;
    };
    return ir::binary(node.op, ir::substitute(node.left, at_corner), ir::substitute(node.right, at_corner));
  }
};

class Splitter : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  explicit Splitter(const ir::Kernel& kernel) {
    for (size_t axis = 0; axis < kernel.grid.size(); ++axis) count_to(kernel.block_vars[axis], kernel.grid[axis]);
  }

  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    if (const auto* let = ir::as<ir::Let>(stmt); let && let->var->type.is_int())
      ranges_[let->var.get()] = ir::bounds(let->value, ranges_);
    for (size_t k = 0; loop && k < loop->vars.size(); ++k) count_to(loop->vars[k], loop->extents[k]);
    if (loop == nullptr || loop->kind != ir::LoopKind::parallel) return rewrite_children(stmt);
    const Stmt chosen = split(*loop, stmt->span);
    return chosen ? chosen : stmt;
  }

 private:
  ir::VarRanges ranges_;

  void count_to(const ir::Var& var, const Expr& extent) {
    const int64_t last = ir::bounds(extent, ranges_).hi - 1;
    ranges_[var.get()] = {0, std::max<int64_t>(last, 0)};
  }

  Stmt split(const ir::For& loop, Span span) const {
    const std::vector<Stmt> body = ir::statements(loop.body);
    const auto* store = body.size() == 1 ? ir::as<ir::Store>(body[0]) : nullptr;
    const auto* choice = store ? ir::as<ir::Select>(store->value) : nullptr;
    if (choice == nullptr || !in_registers(*store)) return nullptr;
    for (const ir::Var& var : loop.vars)  // else several elements of the loop are one of the tile
      if (!ir::mentions(store->indices, var)) return nullptr;
    for (const Expr& extent : loop.extents)
      if (ir::constant_int(extent).value_or(0) < 1) return nullptr;
    // What is masked out becomes infinite, and few tiles are masked out as a whole.
    const bool wanted = !is_infinite(choice->then);
    const Expr all = Deciding(loop, ranges_).of(choice->condition, wanted);
    if (!all || !varies(all)) return nullptr;
    ir::Store simple = *store;
    simple.value = wanted ? choice->then : choice->otherwise;
    ir::For plain = loop;
    for (ir::Var& var : plain.vars) var = ir::make_var(var->name, var->type);
    plain.body = ir::substitute(ir::make_stmt(std::move(simple), body[0]->span), [&](const ir::Var& var) -> Expr {
      for (size_t axis = 0; axis < loop.vars.size(); ++axis)
        if (loop.vars[axis] == var) return ir::var_ref(plain.vars[axis]);
      return nullptr;
    });
    const auto in_block = [&](Stmt one) { return ir::make_stmt(ir::Block{{std::move(one)}}, span); };
    return ir::make_stmt(
        ir::If{all, in_block(ir::make_stmt(std::move(plain), span)), in_block(ir::make_stmt(loop, span))}, span);
  }

  // Loads are better issued early, whichever branch is taken.
  static bool in_registers(const ir::Store& store) {
    bool all = store.buffer->scope == ir::Scope::fragment;
    ir::walk(store.value, [&](const Expr& part) {
      const auto* load = ir::as<ir::Load>(part);
      all = all && (load == nullptr || load->buffer->scope == ir::Scope::fragment);
    });
    return all;
  }

  // Not known before the kernel runs.
  static bool varies(const Expr& expr) {
    bool found = false;
    ir::walk(expr, [&](const Expr& part) { found = found || ir::as<ir::VarRef>(part); });
    return found;
  }
};

}  // namespace

ir::Kernel unswitch_loops(const ir::Kernel& kernel) {
  if (!kernel.thread_vars.empty()) return kernel;  // whose loops each thread runs for itself
  ir::Kernel result = kernel;
  result.body = Splitter(kernel).rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
