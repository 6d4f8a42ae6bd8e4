#include "compiler/targets/gpu/facts/let_values.h"

#include "compiler/ir/search.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

// Whether something else than a sum or product is made of the variable.
bool is_told_apart(const Expr& part, const ir::Var& var) {
  const auto* node = ir::as<ir::Binary>(part);
  const bool other =
      node ? !makes_sums(node->op) : ir::as<ir::Unary>(part) || ir::as<ir::Math>(part) || ir::as<ir::Select>(part);
  return other && ir::mentions(part, var);
}

void walk_parts(const Expr& expr, const std::function<void(const Expr&)>& visit) { ir::walk(expr, visit); }
void walk_parts(const Stmt& stmt, const std::function<void(const Expr&)>& visit) {
  ir::walk(
      stmt, [](const Stmt&) {}, visit);
}

}  // namespace

bool makes_sums(BinaryOp op) { return op == BinaryOp::add || op == BinaryOp::sub || op == BinaryOp::mul; }

bool is_no_arithmetic(const Expr& value) {
  if (const auto* cast = ir::as<ir::Cast>(value)) return is_no_arithmetic(cast->value);
  return ir::as<ir::Load>(value) || ir::as<ir::VarRef>(value) || ir::as<ir::IntImm>(value);
}

c::IntegerFacts facts_of(const ir::Kernel& kernel) {
  c::IntegerFacts facts;
  facts.learn(kernel);
  for (size_t axis = 0; axis < kernel.thread_vars.size(); ++axis)
    facts.set_range(kernel.thread_vars[axis], {0, kernel.threads[axis] - 1});
  return facts;
}

void LetValues::add(const ir::Let& let) {
  const bool fits =
      let.var->type == ir::kBool || is_no_arithmetic(let.value) ||
      (facts_.is_exact(let.value) && facts_.index_range(let.value).within(ir::type_bounds(let.var->type)));
  values_.emplace(let.var.get(), Value{let.var, named(let.value), fits});
}

template <class Node>
Node LetValues::substituted(const Node& node) const {
  if (values_.empty()) return node;
  return ir::substitute(node, [&](const ir::Var& var) -> Expr {
    const auto found = values_.find(var.get());
    if (found == values_.end()) return nullptr;
    bool may_stand = true;
    if (!found->second.fits)
      walk_parts(node, [&](const Expr& part) { may_stand = may_stand && !is_told_apart(part, var); });
    return may_stand ? found->second.value : nullptr;
  });
}

Expr LetValues::named(const Expr& expr) const { return substituted(expr); }
Stmt LetValues::named(const Stmt& stmt) const { return substituted(stmt); }

}  // namespace tilepilot::targets::gpu
