#include "compiler/targets/cpu/integer_facts.h"

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

ir::Expr IntegerFacts::expand(const ir::Expr& expr) const {
  if (values_.empty()) return expr;
  return ir::substitute(expr, [&](const ir::Var& var) -> ir::Expr {
    const auto found = values_.find(var.get());
    return found == values_.end() ? nullptr : expand(found->second);
  });
}

std::optional<ir::Affine> IntegerFacts::affine(const ir::Expr& expr) const {
  if (!is_index_arithmetic(expr)) return std::nullopt;
  return ir::affine(expand(expr));
}

ir::Bounds IntegerFacts::range(const ir::Affine& form) const {
  return ir::bounds(form, ranges_).value_or(ir::Bounds{INT64_MIN, INT64_MAX});
}

ir::Bounds IntegerFacts::range(const ir::Expr& expr) const {
  if (!expr->type.is_int()) return {INT64_MIN, INT64_MAX};
  if (const auto form = affine(expr)) return range(*form);
  return ir::bounds(expand(expr), ranges_);
}

bool IntegerFacts::in_bounds(const ir::Expr& index, const ir::Expr& extent) const {
  if (!is_never_negative(index)) return false;
  const auto position = affine(index);
  const auto end = affine(extent);
  if (position && end) {
    const auto room = ir::difference(*end, *position);
    return room && range(*room).lo >= 1;
  }
  return range(index).hi < range(extent).lo;
}

}  // namespace tilepilot::targets::cpu
