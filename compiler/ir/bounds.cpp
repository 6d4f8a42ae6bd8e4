#include "compiler/ir/bounds.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// An interval before it is checked against the type.
struct Interval {
  Wide lo, hi;
};

Interval wide(Bounds b) { return {b.lo, b.hi}; }

bool fits(Interval i, DType type) {
  const Bounds all = type_bounds(type);
  return (type == kUInt64 ? 0 : all.lo) <= i.lo && i.hi <= all.hi;
}

// A uint64 that may be 2^63 or more is negative as an int64: no arithmetic on such ends means anything.
bool opaque(DType type, Interval i) { return type == kUInt64 && i.lo < 0; }

bool can_leave_range(BinaryOp op) {
  return op == BinaryOp::add || op == BinaryOp::sub || op == BinaryOp::mul || op == BinaryOp::shl;
}

bool widens(DType from, DType to) {
  if (!from.is_int() || !to.is_int() || from.bits > to.bits) return false;
  return from.code == to.code || (from.code == TypeCode::unsigned_int && from.bits < to.bits);
}

Interval hull_of_corners(Interval a, Interval b, Wide (*op)(Wide, Wide)) {
  const auto corners = {op(a.lo, b.lo), op(a.lo, b.hi), op(a.hi, b.lo), op(a.hi, b.hi)};
  return {std::min(corners), std::max(corners)};
}

std::optional<Interval> floor_div_interval(Interval a, Interval b) {
  if (b.lo <= 0 && b.hi >= 0) return std::nullopt;
  return hull_of_corners(a, b, [](Wide x, Wide y) { return floor_div(x, y); });
}

std::optional<Interval> floor_mod_interval(Interval a, Interval b) {
  if (b.lo <= 0) return std::nullopt;
  if (a.lo >= 0 && a.hi < b.lo) return a;
  if (b.lo == b.hi && floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) {
    return Interval{floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
  }
  return Interval{0, a.lo >= 0 ? std::min(a.hi, b.hi - 1) : b.hi - 1};
}

std::optional<Interval> shift_interval(BinaryOp op, Interval a, Interval by) {
  if (by.lo != by.hi || by.lo < 0 || by.lo > 62) return std::nullopt;
  const Wide factor = Wide{1} << int(by.lo);
  if (op == BinaryOp::shl) return Interval{a.lo * factor, a.hi * factor};
  return Interval{floor_div(a.lo, factor), floor_div(a.hi, factor)};
}

std::optional<Interval> bit_and_interval(Interval a, Interval b) {
  if (a.lo < 0 && b.lo < 0) return std::nullopt;
  if (a.lo < 0) return Interval{0, b.hi};
  return Interval{0, b.lo < 0 ? a.hi : std::min(a.hi, b.hi)};
}

// `or` and `xor` of what is not negative: no bit above the highest of both.
std::optional<Interval> bit_or_interval(BinaryOp op, Interval a, Interval b) {
  if (a.lo < 0 || b.lo < 0) return std::nullopt;
  Wide above = 1;
  while (above <= std::max(a.hi, b.hi)) above *= 2;
  return Interval{op == BinaryOp::bit_or ? std::max(a.lo, b.lo) : 0, above - 1};
}

// Decided comparisons give [0, 0] or [1, 1].
Bounds decide(bool surely, bool never) { return surely ? Bounds{1, 1} : never ? Bounds{0, 0} : Bounds{0, 1}; }

Bounds compare(BinaryOp op, Interval difference) {
  const auto [lo, hi] = difference;
  switch (op) {
    case BinaryOp::eq:
      return decide(lo == 0 && hi == 0, lo > 0 || hi < 0);
    case BinaryOp::ne:
      return decide(lo > 0 || hi < 0, lo == 0 && hi == 0);
    case BinaryOp::lt:
      return decide(hi < 0, lo >= 0);
    case BinaryOp::le:
      return decide(hi <= 0, lo > 0);
    case BinaryOp::gt:
      return decide(lo > 0, hi <= 0);
    case BinaryOp::ge:
      return decide(lo >= 0, hi < 0);
    default:
      return {0, 1};
  }
}

class Analysis {
 public:
  explicit Analysis(const VarRanges& ranges) : ranges_(ranges) {}

  bool wraps = false;  // whether something met so far may wrap

  Bounds of(const Expr& e) {
    if (!e->type.is_int() && !e->type.is_bool()) return {kMin, kMax};
    const std::optional<Interval> found = interval(e);
    if (!found) return type_bounds(e->type);
    if (fits(*found, e->type)) return {int64_t(found->lo), int64_t(found->hi)};
    wraps = true;
    return type_bounds(e->type);
  }

 private:
  const VarRanges& ranges_;

  std::optional<Interval> interval(const Expr& e) {
    using Maybe = std::optional<Interval>;
    return std::visit(overloaded{
                          [](const IntImm& n) -> Maybe {
                            return Interval{n.value, n.value};
                          },
                          [](const FloatImm&) -> Maybe { return std::nullopt; },
                          [&](const VarRef& n) -> Maybe {
                            const auto known = ranges_.find(n.var.get());
                            if (known == ranges_.end()) return std::nullopt;
                            return wide(known->second);
                          },
                          [](const Load&) -> Maybe { return std::nullopt; },
                          [&](const Unary& n) { return unary_interval(n); },
                          [&](const Binary& n) { return binary_interval(n); },
                          [&](const Math& n) { return math_interval(n); },
                          [&](const Select& n) -> Maybe {
                            const Bounds condition = of(n.condition), then = of(n.then), otherwise = of(n.otherwise);
                            if (condition.is_constant()) return wide(condition.lo ? then : otherwise);
                            return Interval{std::min(then.lo, otherwise.lo), std::max(then.hi, otherwise.hi)};
                          },
                          [&](const Cast& n) { return cast_interval(n, e->type); },
                          [](const Reinterpret&) -> Maybe { return std::nullopt; },
                      },
                      e->node);
  }

  std::optional<Interval> unary_interval(const Unary& n) {
    const Interval x = wide(of(n.operand));
    if (opaque(n.operand->type, x)) {
      wraps |= n.op == UnaryOp::neg;
      return std::nullopt;
    }
    if (n.op == UnaryOp::neg) return Interval{-x.hi, -x.lo};
    if (n.op == UnaryOp::logical_not) return Interval{1 - x.hi, 1 - x.lo};
    if (n.operand->type.code == TypeCode::signed_int) return Interval{-1 - x.hi, -1 - x.lo};
    return std::nullopt;
  }

  std::optional<Interval> math_interval(const Math& n) {
    if (n.function != MathFn::abs || !n.argument->type.is_int()) return std::nullopt;
    const Interval x = wide(of(n.argument));
    if (opaque(n.argument->type, x)) return std::nullopt;
    if (x.lo >= 0) return x;
    return Interval{x.hi >= 0 ? 0 : -x.hi, std::max(-x.lo, x.hi)};
  }

  std::optional<Interval> cast_interval(const Cast& n, DType to) {
    if (!n.value->type.is_int() && !n.value->type.is_bool()) return std::nullopt;
    const Bounds value = of(n.value);
    if (opaque(n.value->type, wide(value))) return std::nullopt;
    if (to.is_bool()) return Interval{value.lo > 0 || value.hi < 0, value.lo != 0 || value.hi != 0};
    // A cast that may wrap is meant to: it is no accident of arithmetic.
    return fits(wide(value), to) ? std::optional(wide(value)) : std::nullopt;
  }

  std::optional<Interval> binary_interval(const Binary& n) {
    if (n.left->type.is_float()) return std::nullopt;
    const Interval a = wide(of(n.left)), b = wide(of(n.right));
    const bool clear = !opaque(n.left->type, a) && !opaque(n.right->type, b);
    const auto result = clear ? binary_interval(n, a, b) : std::nullopt;
    // An unknown product or shift may be anything; an unknown quotient stays in range.
    if (!result && can_leave_range(n.op)) wraps = true;
    return result;
  }

  std::optional<Interval> binary_interval(const Binary& n, Interval a, Interval b) {
    switch (n.op) {
      case BinaryOp::add:
        return Interval{a.lo + b.lo, a.hi + b.hi};
      case BinaryOp::sub:
        return Interval{a.lo - b.hi, a.hi - b.lo};
      case BinaryOp::mul:
        return hull_of_corners(a, b, [](Wide x, Wide y) { return x * y; });
      case BinaryOp::floor_div:
        return floor_div_interval(a, b);
      case BinaryOp::floor_mod:
        return floor_mod_interval(a, b);
      case BinaryOp::min:
        return Interval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      case BinaryOp::max:
        return Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
      case BinaryOp::shl:
      case BinaryOp::shr:
        return shift_interval(n.op, a, b);
      case BinaryOp::bit_and:
        return bit_and_interval(a, b);
      case BinaryOp::bit_or:
      case BinaryOp::bit_xor:
        return bit_or_interval(n.op, a, b);
      case BinaryOp::logical_and:
        return Interval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      case BinaryOp::logical_or:
        return Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
      case BinaryOp::eq:
      case BinaryOp::ne:
      case BinaryOp::lt:
      case BinaryOp::le:
      case BinaryOp::gt:
      case BinaryOp::ge:
        return wide(comparison(n, a, b));
      case BinaryOp::div:
      case BinaryOp::pow:
      case BinaryOp::atan2:
      case BinaryOp::hypot:
      case BinaryOp::ldexp:
      case BinaryOp::nextafter:
      case BinaryOp::fmod:
        return std::nullopt;
    }
    return std::nullopt;
  }

  // By the ends, or by the difference where common terms cancel: `i + 1 < i + n`.
  Bounds comparison(const Binary& n, Interval a, Interval b) {
    const Bounds by_ends = compare(n.op, {a.lo - b.hi, a.hi - b.lo});
    if (by_ends.is_constant() || may_wrap(n.left, ranges_) || may_wrap(n.right, ranges_)) return by_ends;
    const auto left = affine(n.left), right = affine(n.right);
    if (!left || !right) return by_ends;
    const auto apart = difference(*left, *right);
    const auto range = apart ? bounds(*apart, ranges_) : std::nullopt;
    return range ? compare(n.op, wide(*range)) : by_ends;
  }
};

// affine ------------------------------------------------------------------------------------------------------------

bool fits_64(Wide value) { return value >= kMin && value <= kMax; }

// a + factor * b
std::optional<Affine> combine(const Affine& a, const Affine& b, int64_t factor) {
  Affine result = a;
  const Wide constant = a.constant + Wide{b.constant} * factor;
  if (!fits_64(constant)) return std::nullopt;
  result.constant = int64_t(constant);
  for (const Affine::Term& term : b.terms) {
    const Wide sum = a.coefficient(term.var) + Wide{term.coefficient} * factor;
    if (!fits_64(sum)) return std::nullopt;
    const auto known = std::find_if(result.terms.begin(), result.terms.end(),
                                    [&](const Affine::Term& t) { return t.var == term.var; });
    if (known == result.terms.end()) {
      result.terms.push_back({term.var, int64_t(sum)});
    } else {
      known->coefficient = int64_t(sum);
    }
  }
  std::erase_if(result.terms, [](const Affine::Term& t) { return t.coefficient == 0; });
  return result;
}

std::optional<Affine> affine_of(const Binary& n) {
  const auto left = affine(n.left), right = affine(n.right);
  if (!left || !right) return std::nullopt;
  if (n.op == BinaryOp::add) return combine(*left, *right, 1);
  if (n.op == BinaryOp::sub) return combine(*left, *right, -1);
  if (n.op == BinaryOp::mul && right->is_constant()) return combine({}, *left, right->constant);
  if (n.op == BinaryOp::mul && left->is_constant()) return combine({}, *right, left->constant);
  const bool small_shift = right->is_constant() && right->constant >= 0 && right->constant < 62;
  if (n.op == BinaryOp::shl && small_shift) return combine({}, *left, int64_t{1} << right->constant);
  return std::nullopt;
}

}  // namespace

Bounds type_bounds(DType type) {
  if (type.is_bool()) return {0, 1};
  if (type.bits >= 64 || !type.is_int()) return {kMin, kMax};
  if (type.code == TypeCode::unsigned_int) return {0, (int64_t{1} << type.bits) - 1};
  return {-(int64_t{1} << (type.bits - 1)), (int64_t{1} << (type.bits - 1)) - 1};
}

Bounds bounds(const Expr& expr, const VarRanges& ranges) {
  Analysis analysis(ranges);
  const Bounds plain = analysis.of(expr);
  if (plain.is_constant() || analysis.wraps || !expr->type.is_int()) return plain;
  const auto sum = affine(expr);
  const auto cancelled = sum ? bounds(*sum, ranges) : std::nullopt;
  if (!cancelled) return plain;
  return {std::max(plain.lo, cancelled->lo), std::min(plain.hi, cancelled->hi)};
}

bool may_wrap(const Expr& expr, const VarRanges& ranges) {
  Analysis analysis(ranges);
  analysis.of(expr);
  return analysis.wraps;
}

int64_t Affine::coefficient(const Var& var) const {
  const auto term = std::find_if(terms.begin(), terms.end(), [&](const Term& t) { return t.var == var; });
  return term == terms.end() ? 0 : term->coefficient;
}

std::optional<Affine> affine(const Expr& expr) {
  if (!expr->type.is_int()) return std::nullopt;
  using Maybe = std::optional<Affine>;
  const auto no = [](const auto&) -> Maybe { return std::nullopt; };
  return std::visit(
      overloaded{
          [](const IntImm& n) -> Maybe {
            return Affine{{}, n.value};
          },
          [](const VarRef& n) -> Maybe {
            return Affine{{{n.var, 1}}, 0};
          },
          [](const Unary& n) -> Maybe {
            const auto value = n.op == UnaryOp::neg ? affine(n.operand) : std::nullopt;
            return value ? combine({}, *value, -1) : std::nullopt;
          },
          [](const Binary& n) -> Maybe { return affine_of(n); },
          [&](const Cast& n) -> Maybe { return widens(n.value->type, expr->type) ? affine(n.value) : std::nullopt; },
          no,
      },
      expr->node);
}

std::optional<Affine> difference(const Affine& a, const Affine& b) { return combine(a, b, -1); }

std::optional<Bounds> bounds(const Affine& affine, const VarRanges& ranges) {
  Wide lo = affine.constant, hi = affine.constant;
  for (const auto& [var, coefficient] : affine.terms) {
    const auto known = ranges.find(var.get());
    const Bounds range = known == ranges.end() ? type_bounds(var->type) : known->second;
    lo += Wide{coefficient} * (coefficient > 0 ? range.lo : range.hi);
    hi += Wide{coefficient} * (coefficient > 0 ? range.hi : range.lo);
  }
  if (!fits_64(lo) || !fits_64(hi)) return std::nullopt;
  return Bounds{int64_t(lo), int64_t(hi)};
}

}  // namespace tilepilot::ir
