#include "compiler/targets/gpu/schedule/first_clear.h"

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

// The fill, if the statement is `if var == 0 { fill }` of a fragment with a constant; else null.
Stmt first_fill(const Stmt& stmt, const ir::Var& var) {
  const auto* choice = ir::as<ir::If>(stmt);
  const auto* test = choice && !choice->otherwise ? ir::as<ir::Binary>(choice->condition) : nullptr;
  if (test == nullptr || test->op != BinaryOp::eq) return nullptr;
  const auto is = [&](const Expr& a, const Expr& b) {
    const auto* ref = ir::as<ir::VarRef>(a);
    return ref && ref->var == var && ir::constant_int(b) == 0;
  };
  if (!is(test->left, test->right) && !is(test->right, test->left)) return nullptr;
  const std::vector<Stmt> body = ir::statements(choice->then);
  const auto* fill = body.size() == 1 ? ir::as<ir::Fill>(body[0]) : nullptr;
  const bool moves = fill && fill->destination.buffer->scope == ir::Scope::fragment && is_whole(fill->destination) &&
                     (ir::as<ir::FloatImm>(fill->value) || ir::as<ir::IntImm>(fill->value));
  return moves ? body[0] : nullptr;
}

class ClearsFirst : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  Stmt rewrite(const Stmt& stmt) override {
    const Stmt inner = rewrite_children(stmt);
    if (!is_pipelined(inner)) return inner;
    ir::For loop = *ir::as<ir::For>(inner);
    std::vector<Stmt> before, rest;
    for (const Stmt& part : ir::statements(loop.body)) {
      const Stmt fill = first_fill(part, loop.vars[0]);
      const bool moves = fill && !uses(rest, ir::as<ir::Fill>(fill)->destination.buffer);
      (moves ? before : rest).push_back(moves ? fill : part);
    }
    if (before.empty()) return inner;
    const Expr& count = loop.extents[0];
    if (ir::constant_int(count).value_or(0) < 1) {
      const Expr any = ir::binary(BinaryOp::ge, count, ir::int_imm(1, count->type), stmt->span);
      before = {
          ir::make_stmt(ir::If{any, ir::make_stmt(ir::Block{std::move(before)}, stmt->span), nullptr}, stmt->span)};
    }
    loop.body = ir::make_stmt(ir::Block{std::move(rest)}, loop.body->span);
    before.push_back(ir::make_stmt(std::move(loop), stmt->span));
    return ir::make_stmt(ir::Block{std::move(before)}, stmt->span);
  }

 private:
  static bool uses(const std::vector<Stmt>& all, const ir::Buffer& buffer) {
    for (const Stmt& stmt : all) {
      const ir::Effects effects = ir::memory_effects_of(stmt);
      if (effects.reads.contains(ir::memory_of(buffer)) || effects.writes.contains(ir::memory_of(buffer))) return true;
    }
    return false;
  }
};

}  // namespace

ir::Kernel with_clears_first(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = ClearsFirst().rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
