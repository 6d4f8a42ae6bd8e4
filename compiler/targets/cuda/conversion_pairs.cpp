#include "compiler/targets/cuda/conversion_pairs.h"

#include "compiler/ir/bounds.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using ir::Expr;
using ir::Stmt;

namespace {

bool is_even(int64_t number) { return number % 2 == 0; }

// Whether the places of iterations 2 k and 2 k + 1 are aligned neighbours.
bool pairs_up(const Expr& index, const ir::Var& var) {
  const auto form = ir::affine(index);
  if (!form || !is_even(form->constant) || form->coefficient(var) != 1) return false;
  return std::all_of(form->terms.begin(), form->terms.end(),
                     [&](const ir::Affine::Term& term) { return term.var == var || is_even(term.coefficient); });
}

class Pairing : public ir::Rewriter {
 public:
  using ir::Rewriter::rewrite;
  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    const Stmt paired = loop ? pair(*loop, stmt->span) : nullptr;
    return paired ? paired : rewrite_children(stmt);
  }

 private:
  static Stmt pair(const ir::For& loop, Span span) {
    const std::vector<Stmt> body = ir::statements(loop.body);
    if (loop.kind != ir::LoopKind::unrolled || loop.vars.size() != 1 || body.size() != 1) return nullptr;
    const auto extent = ir::constant_int(loop.extents[0]);
    const auto* store = ir::as<ir::Store>(body[0]);
    if (!extent || *extent < 2 || !is_even(*extent) || !store || !is_register_of_8_bits(*store->buffer)) return nullptr;
    const auto* cast = ir::as<ir::Cast>(store->value);
    if (!cast || !cast->value->type.is_float() || cast->value->type.bits > 32) return nullptr;
    if (store->indices.size() != 1 || !pairs_up(store->indices[0], loop.vars[0])) return nullptr;
    if (ir::effects_of(body[0]).reads.contains(store->buffer.get())) return nullptr;

    const ir::Var number = ir::make_var(loop.vars[0]->name, loop.vars[0]->type);
    const auto at = [&](const Expr& expr, int64_t which) {
      const Expr iteration = ir::binary(
          ir::BinaryOp::add, ir::binary(ir::BinaryOp::mul, ir::var_ref(number), ir::int_imm(2, number->type), span),
          ir::int_imm(which, number->type), span);
      return ir::substitute(expr,
                            [&](const ir::Var& var) -> Expr { return var == loop.vars[0] ? iteration : nullptr; });
    };
    const Expr value = ir::cast(cast->value, ir::kFloat32);
    const Stmt both = call(
        "narrow_pair", {element(store->buffer, {at(store->indices[0], 0)}, span), at(value, 0), at(value, 1)}, span);
    return unrolled(number, *extent / 2, {both}, span);
  }

  static bool is_register_of_8_bits(const ir::BufferData& buffer) {
    return buffer.scope == ir::Scope::local && (buffer.type == ir::kFloat8E4M3 || buffer.type == ir::kFloat8E5M2);
  }
};

}  // namespace

Stmt pair_conversions(const Stmt& body) { return Pairing().rewrite(body); }

}  // namespace tilepilot::targets::cuda
