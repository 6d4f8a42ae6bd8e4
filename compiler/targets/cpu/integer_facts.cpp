#include "compiler/targets/cpu/integer_facts.h"

#include "compiler/ir/visit.h"

namespace tilepilot::targets::cpu {

ir::Expr IntegerFacts::expand(const ir::Expr& expr) const {
  if (values_.empty()) return expr;
  return ir::substitute(expr, [&](const ir::Var& var) -> ir::Expr {
    const auto found = values_.find(var.get());
    return found == values_.end() ? nullptr : expand(found->second);
  });
}

std::optional<ir::Affine> IntegerFacts::affine(const ir::Expr& expr) const {
  if (!expr->type.is_int() || expr->type.bits < 32) return std::nullopt;
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
