#include "compiler/targets/cpu/integer_facts.h"

#include <algorithm>

#include "compiler/ir/visit.h"

namespace tilepilot::targets::cpu {

bool is_index_arithmetic(const ir::Expr& expr) {
  using ir::BinaryOp;
  if (expr->type.code != ir::TypeCode::signed_int || expr->type.bits < 32) return false;
  return std::visit(
      ir::overloaded{
          [](const ir::IntImm&) { return true; },
          [](const ir::VarRef&) { return true; },
          [](const ir::Unary& node) { return node.op == ir::UnaryOp::neg && is_index_arithmetic(node.operand); },
          [](const ir::Binary& node) {
            const bool has_form = node.op == BinaryOp::add || node.op == BinaryOp::sub || node.op == BinaryOp::mul ||
                                  node.op == BinaryOp::floor_div || node.op == BinaryOp::floor_mod ||
                                  node.op == BinaryOp::min || node.op == BinaryOp::max;
            return has_form && is_index_arithmetic(node.left) && is_index_arithmetic(node.right);
          },
          [](const ir::Cast& node) { return is_index_arithmetic(node.value); },
          [](const auto&) { return false; },
      },
      expr->node);
}

void IntegerFacts::learn(const ir::Kernel& kernel) {
  for (size_t axis = 0; axis < kernel.block_vars.size(); ++axis) learn_loop(kernel.block_vars[axis], kernel.grid[axis]);
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        const auto* let = std::get_if<ir::Let>(&stmt->node);
        if (let != nullptr && is_index_arithmetic(let->value)) set_value(let->var, let->value);
        const auto* loop = std::get_if<ir::For>(&stmt->node);
        for (size_t k = 0; loop != nullptr && k < loop->vars.size(); ++k) learn_loop(loop->vars[k], loop->extents[k]);
      },
      [](const ir::Expr&) {});
}

void IntegerFacts::learn_loop(const ir::Var& var, const ir::Expr& extent) {
  set_range(var, {0, std::clamp<int64_t>(range(extent).hi, 1, kLargestGrid) - 1});
}

ir::Expr IntegerFacts::expand(const ir::Expr& expr) const {
  if (values_.empty()) return expr;
  return ir::substitute(expr, [&](const ir::Var& var) -> ir::Expr {
    const auto found = values_.find(var.get());
    return found == values_.end() ? nullptr : expand(found->second);
  });
}

ir::Expr IntegerFacts::expand_sums(const ir::Expr& expr) const {
  if (values_.empty()) return expr;
  return ir::substitute(expr, [&](const ir::Var& var) -> ir::Expr {
    const auto found = values_.find(var.get());
    const ir::Expr value = found == values_.end() ? nullptr : expand_sums(found->second);
    return value && ir::affine(value) ? value : nullptr;
  });
}

std::optional<ir::Affine> IntegerFacts::affine(const ir::Expr& expr) const {
  if (!is_index_arithmetic(expr)) return std::nullopt;
  return ir::affine(expand_sums(expr));
}

ir::Bounds IntegerFacts::range(const ir::Affine& form) const {
  ir::VarRanges ranges;
  for (const auto& term : form.terms) {
    const auto known = ranges_.find(term.var.get());
    const auto value = values_.find(term.var.get());
    if (value != values_.end())
      ranges[term.var.get()] = ir::bounds(expand(value->second), ranges_);
    else if (known != ranges_.end())
      ranges[term.var.get()] = known->second;
  }
  return ir::bounds(form, ranges).value_or(ir::Bounds{INT64_MIN, INT64_MAX});
}

ir::Bounds IntegerFacts::range(const ir::Expr& expr) const {
  if (!expr->type.is_int()) return {INT64_MIN, INT64_MAX};
  const auto form = affine(expr);
  const bool has_lets = form && std::any_of(form->terms.begin(), form->terms.end(),
                                            [&](const auto& term) { return values_.contains(term.var.get()); });
  if (form && !has_lets) return range(*form);
  const ir::Bounds whole = ir::bounds(expand(expr), ranges_);
  if (!form) return whole;
  const ir::Bounds sum = range(*form);
  return {std::max(sum.lo, whole.lo), std::min(sum.hi, whole.hi)};
}

bool IntegerFacts::in_bounds(const ir::Expr& index, const ir::Expr& extent) const {
  const auto position = affine(index);
  if (!is_never_negative(index)) {
    ir::Affine next = position.value_or(ir::Affine{});
    next.constant += 1;
    if (!position || !is_positive(next)) return false;
  }
  const auto end = affine(extent);
  if (position && end) {
    const auto room = ir::difference(*end, *position);
    return room && is_positive(*room);
  }
  return range(index).hi < range(extent).lo;
}

bool IntegerFacts::is_positive(const ir::Affine& form) const {
  if (range(form).lo >= 1) return true;
  return std::any_of(assumed_.begin(), assumed_.end(), [&](const ir::Affine& known) {
    const auto more = ir::difference(form, known);
    return more && range(*more).lo >= 1;
  });
}

size_t IntegerFacts::assume(const ir::Expr& condition) {
  const size_t before = assumed_.size();
  collect_comparisons(*this, condition, assumed_);
  return assumed_.size() - before;
}

bool collect_comparisons(const IntegerFacts& facts, const ir::Expr& condition, std::vector<ir::Affine>& forms) {
  using ir::BinaryOp;
  const auto* node = std::get_if<ir::Binary>(&condition->node);
  if (node == nullptr) return false;
  if (node->op == BinaryOp::logical_and)
    return collect_comparisons(facts, node->left, forms) && collect_comparisons(facts, node->right, forms);
  const bool less = node->op == BinaryOp::lt || node->op == BinaryOp::le;
  const bool greater = node->op == BinaryOp::gt || node->op == BinaryOp::ge;
  if (!less && !greater) return false;
  const auto left = facts.affine(node->left), right = facts.affine(node->right);
  if (!left || !right) return false;
  auto room = less ? ir::difference(*right, *left) : ir::difference(*left, *right);
  if (!room) return false;
  if (node->op == BinaryOp::lt || node->op == BinaryOp::gt) room->constant -= 1;
  forms.push_back(*room);
  return true;
}

}  // namespace tilepilot::targets::cpu
