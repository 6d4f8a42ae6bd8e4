#include "compiler/ir/text/spelling.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/fold.h"
#include "compiler/passes/algebra/rewrite_rules.h"
#include "compiler/passes/algebra/simplify.h"
#include "compiler/passes/algebra/sum.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

// Rules shorten what they rewrite; should some not, the work still ends.
constexpr int kMostSteps = 10000;

class ExprSimplifier : public Rewriter {
 public:
  explicit ExprSimplifier(const VarRanges& ranges) : ranges_(ranges) {}
  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    if (const auto* n = std::get_if<Select>(&e->node)) return finish(choice(*n, e));
    const auto* n = std::get_if<Binary>(&e->node);
    const bool lazy = n && (n->op == BinaryOp::logical_and || n->op == BinaryOp::logical_or);
    return finish(lazy ? logic(*n, e) : rewrite_children(e));
  }

 private:
  VarRanges ranges_;
  int steps_ = 0;

  Expr under(const Expr& condition, bool holds, const Expr& e) {
    const VarRanges outside = ranges_;
    ranges_ = assume(condition, holds, ranges_);
    Expr result = rewrite(e);
    ranges_ = outside;
    return result;
  }

  // Each side only runs where the condition lets it.
  Expr choice(const Select& n, const Expr& e) {
    const Expr condition = rewrite(n.condition);
    const Expr then = under(condition, true, n.then), otherwise = under(condition, false, n.otherwise);
    const bool same = condition == n.condition && then == n.then && otherwise == n.otherwise;
    return same ? e : select(condition, then, otherwise, e->span);
  }

  Expr logic(const Binary& n, const Expr& e) {
    const Expr left = rewrite(n.left), right = under(left, n.op == BinaryOp::logical_and, n.right);
    return left == n.left && right == n.right ? e : binary(n.op, left, right, e->span);
  }

  Expr finish(Expr e) {
    while (steps_ < kMostSteps) {
      Expr next = step(e);
      if (!next) break;
      e = std::move(next);
    }
    return e;
  }

  // One rewrite at the root, or null.
  Expr step(const Expr& e) {
    if (is_literal(e)) return nullptr;
    using Rewrite = Expr (ExprSimplifier::*)(const Expr&);
    static constexpr Rewrite kRewrites[] = {&ExprSimplifier::folded, &ExprSimplifier::decided, &ExprSimplifier::by_rule,
                                            &ExprSimplifier::by_sum, &ExprSimplifier::without_cast};
    for (const Rewrite rewrite : kRewrites) {
      Expr next = (this->*rewrite)(e);
      if (!next) continue;
      ++steps_;
      return next;
    }
    return nullptr;
  }

  Expr folded(const Expr& e) { return fold(e); }

  // The only value that the ranges leave.
  Expr decided(const Expr& e) {
    if (!e->type.is_int() && !e->type.is_bool()) return nullptr;
    const Bounds range = bounds(e, ranges_);
    return range.is_constant() ? int_imm(range.lo, e->type, e->span) : nullptr;
  }

  Expr by_rule(const Expr& e) {
    for (const CompiledRule* rule : rules_for(e)) {
      const auto bindings = match(rule->from, e);
      if (!bindings || !holds(*rule, *bindings)) continue;
      if (rule->rule->arithmetic == Arithmetic::exact && operands_may_wrap(e)) continue;
      return instantiate(rule->to, *bindings, e->span, [&](Expr part) { return finish(std::move(part)); });
    }
    return nullptr;
  }

  bool holds(const CompiledRule& rule, const Bindings& bindings) {
    if (is_literal(rule.when)) return true;
    const Expr condition = instantiate(rule.when, bindings, {}, [](Expr part) { return part; });
    return bounds(condition, ranges_) == Bounds{1, 1};
  }

  bool operands_may_wrap(const Expr& e) const {
    const auto* n = std::get_if<Binary>(&e->node);
    return !n || may_wrap(n->left, ranges_) || may_wrap(n->right, ranges_);
  }

  Expr by_sum(const Expr& e) {
    const auto* n = std::get_if<Binary>(&e->node);
    if (!n || !e->type.is_int()) return nullptr;
    Expr result;
    if (n->op == BinaryOp::add || n->op == BinaryOp::sub) result = collect_terms(e);
    if (n->op == BinaryOp::floor_div || n->op == BinaryOp::floor_mod) result = divide_sum(e, ranges_);
    return result ? rewrite_children(result) : nullptr;
  }

  Expr without_cast(const Expr& e) {
    const auto* n = std::get_if<Cast>(&e->node);
    return n && n->value->type == e->type ? n->value : nullptr;
  }
};

}  // namespace

Expr simplify(const Expr& expr, const VarRanges& ranges) { return ExprSimplifier(ranges).rewrite(expr); }

}  // namespace tilepilot::passes
