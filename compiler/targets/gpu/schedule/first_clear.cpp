#include "compiler/targets/gpu/schedule/first_clear.h"

#include <cmath>

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

bool is_zero(const Expr& value) {
  const auto* real = ir::as<ir::FloatImm>(value);
  return ir::constant_int(value) == 0 || (real && real->value == 0 && !std::signbit(real->value));
}

bool uses(const std::vector<Stmt>& all, const ir::Buffer& buffer) {
  for (const Stmt& stmt : all) {
    const ir::Effects effects = ir::memory_effects_of(stmt);
    if (effects.reads.contains(ir::memory_of(buffer)) || effects.writes.contains(ir::memory_of(buffer))) return true;
  }
  return false;
}

class ClearsInGemms : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  Stmt rewrite(const Stmt& stmt) override {
    const Stmt inner = rewrite_children(stmt);
    const auto* list = ir::as<ir::Block>(inner);
    if (list == nullptr) return inner;
    std::vector<Stmt> body = list->body;
    bool changed = false;
    for (size_t at = 0; at < body.size();) {
      const size_t gemm = clears_for(body, at);
      if (gemm == 0) {
        ++at;
        continue;
      }
      ir::Gemm clearing = *ir::as<ir::Gemm>(body[gemm]);
      clearing.clear_accumulator = true;
      body[gemm] = ir::make_stmt(std::move(clearing), body[gemm]->span);
      body.erase(body.begin() + static_cast<ptrdiff_t>(at));
      changed = true;
    }
    return changed ? ir::make_stmt(ir::Block{std::move(body)}, stmt->span) : inner;
  }

 private:
  // Where the GEMM stands that the statement at `at` clears the sums of; 0: there is none.
  static size_t clears_for(const std::vector<Stmt>& body, size_t at) {
    const auto* fill = ir::as<ir::Fill>(body[at]);
    if (!fill || fill->destination.buffer->scope != ir::Scope::fragment || fill->destination.buffer->base ||
        !is_whole(fill->destination) || !is_zero(fill->value))
      return 0;
    for (size_t after = at + 1; after < body.size(); ++after) {
      const auto* gemm = ir::as<ir::Gemm>(body[after]);
      if (gemm && gemm->c.buffer == fill->destination.buffer) {
        const bool takes = is_whole(gemm->c) && gemm->a.buffer != gemm->c.buffer && gemm->b.buffer != gemm->c.buffer;
        return takes ? after : 0;
      }
      if (uses({body[after]}, fill->destination.buffer) || ir::contains<ir::Break, ir::Continue>(body[after])) return 0;
    }
    return 0;
  }
};

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
};

}  // namespace

ir::Kernel with_clears_first(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = ClearsFirst().rewrite(kernel.body);
  return result;
}

ir::Kernel with_clears_in_gemms(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = ClearsInGemms().rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
