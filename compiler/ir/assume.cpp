#include <algorithm>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/bounds.h"

namespace tilepilot::ir {
namespace {

void narrow(VarRanges& ranges, const Var& var, Bounds to) {
  const auto known = ranges.find(var.get());
  const Bounds old = known == ranges.end() ? type_bounds(var->type) : known->second;
  const Bounds both{std::max(old.lo, to.lo), std::min(old.hi, to.hi)};
  // An empty interval means that the place is never reached; anything may be believed there, so believe the old.
  if (both.lo <= both.hi) ranges[var.get()] = both;
}

// From lo <= sum <= hi for each variable of the sum, given the intervals of the others.
void narrow_terms(VarRanges& ranges, const Affine& sum, Bounds limits) {
  for (const auto& [var, coefficient] : sum.terms) {
    Affine rest = sum;
    std::erase_if(rest.terms, [&, v = var](const Affine::Term& t) { return t.var == v; });
    const auto others = bounds(rest, ranges);
    if (!others) continue;
    // limits.lo - others.hi <= coefficient * var <= limits.hi - others.lo
    const Wide lo = Wide{limits.lo} - others->hi, hi = Wide{limits.hi} - others->lo;
    const Bounds all = type_bounds(kInt64);
    const Wide first = coefficient > 0 ? -floor_div(-lo, coefficient) : -floor_div(-hi, coefficient);
    const Wide last = coefficient > 0 ? floor_div(hi, coefficient) : floor_div(lo, coefficient);
    if (first > all.hi || last < all.lo) continue;
    narrow(ranges, var, {int64_t(std::max<Wide>(first, all.lo)), int64_t(std::min<Wide>(last, all.hi))});
  }
}

BinaryOp negated(BinaryOp op) {
  switch (op) {
    case BinaryOp::eq:
      return BinaryOp::ne;
    case BinaryOp::ne:
      return BinaryOp::eq;
    case BinaryOp::lt:
      return BinaryOp::ge;
    case BinaryOp::le:
      return BinaryOp::gt;
    case BinaryOp::gt:
      return BinaryOp::le;
    case BinaryOp::ge:
      return BinaryOp::lt;
    default:
      return op;
  }
}

// The interval of `left - right` that the comparison allows.
std::optional<Bounds> allowed_difference(BinaryOp op) {
  const Bounds all = type_bounds(kInt64);
  switch (op) {
    case BinaryOp::eq:
      return Bounds{0, 0};
    case BinaryOp::lt:
      return Bounds{all.lo, -1};
    case BinaryOp::le:
      return Bounds{all.lo, 0};
    case BinaryOp::gt:
      return Bounds{1, all.hi};
    case BinaryOp::ge:
      return Bounds{0, all.hi};
    default:
      return std::nullopt;
  }
}

void assume_comparison(const Binary& n, bool holds, VarRanges& ranges) {
  const auto limits = allowed_difference(holds ? n.op : negated(n.op));
  if (!limits || !n.left->type.is_int() || n.left->type == kUInt64) return;
  if (may_wrap(n.left, ranges) || may_wrap(n.right, ranges)) return;
  const auto left = affine(n.left), right = affine(n.right);
  if (!left || !right) return;
  if (const auto apart = difference(*left, *right)) narrow_terms(ranges, *apart, *limits);
}

}  // namespace

VarRanges assume(const Expr& condition, bool holds, VarRanges ranges) {
  if (const auto* u = std::get_if<Unary>(&condition->node); u && u->op == UnaryOp::logical_not) {
    return assume(u->operand, !holds, std::move(ranges));
  }
  const auto* b = std::get_if<Binary>(&condition->node);
  if (!b) return ranges;
  const bool both = (b->op == BinaryOp::logical_and && holds) || (b->op == BinaryOp::logical_or && !holds);
  if (both) return assume(b->right, holds, assume(b->left, holds, std::move(ranges)));
  if (b->op >= BinaryOp::eq && b->op <= BinaryOp::ge) assume_comparison(*b, holds, ranges);
  return ranges;
}

}  // namespace tilepilot::ir
