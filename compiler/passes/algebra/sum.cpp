#include "compiler/passes/algebra/sum.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/text/text.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

using Term = Sum::Term;

class Summing {
 public:
  void add(const Expr& e, int64_t factor);
  Sum sum;

 private:
  void add_part(const Expr& part, int64_t factor);
  int64_t checked(Wide value) {
    sum.fits &= value >= INT64_MIN && value <= INT64_MAX;
    return static_cast<int64_t>(value);
  }
};

void Summing::add_part(const Expr& part, int64_t factor) {
  const auto known =
      std::find_if(sum.terms.begin(), sum.terms.end(), [&](const Term& t) { return structurally_equal(t.part, part); });
  if (known == sum.terms.end()) {
    sum.terms.push_back({part, factor});
  } else {
    known->coefficient = checked(Wide{known->coefficient} + factor);
  }
}

void Summing::add(const Expr& e, int64_t factor) {
  if (const auto value = constant_int(e)) {
    ++sum.leaves;
    sum.constant = checked(sum.constant + Wide{*value} * factor);
    return;
  }
  if (const auto* n = std::get_if<Unary>(&e->node); n && n->op == UnaryOp::neg) {
    return add(n->operand, checked(-Wide{factor}));
  }
  const auto* n = std::get_if<Binary>(&e->node);
  if (n && (n->op == BinaryOp::add || n->op == BinaryOp::sub)) {
    add(n->left, factor);
    return add(n->right, n->op == BinaryOp::add ? factor : checked(-Wide{factor}));
  }
  const auto scale = n && n->op == BinaryOp::mul ? constant_int(n->right) : std::nullopt;
  if (scale) return add(n->left, checked(Wide{*scale} * factor));
  ++sum.leaves;
  add_part(e, factor);
}

// The sum as an expression: positive terms first, so that it need not begin with a negation.
Expr build(Sum sum, DType type, Span span) {
  std::stable_partition(sum.terms.begin(), sum.terms.end(), [](const Term& t) { return t.coefficient > 0; });
  Expr result;
  for (const auto& [part, coefficient] : sum.terms) {
    const bool subtract = result && coefficient < 0 && coefficient != INT64_MIN;
    const int64_t factor = subtract ? -coefficient : coefficient;
    const Expr scaled = factor == 1 ? part : binary(BinaryOp::mul, part, int_imm(wrap(factor, type), type, span), span);
    result = !result ? scaled : binary(subtract ? BinaryOp::sub : BinaryOp::add, result, scaled, span);
  }
  const Expr constant = int_imm(wrap(sum.constant, type), type, span);
  if (!result) return constant;
  return sum.constant == 0 ? result : binary(BinaryOp::add, result, constant, span);
}

// sum = divisor * multiples + rest
struct Split {
  Sum multiples, rest;
};

Split split(const Sum& sum, int64_t divisor) {
  Split result;
  for (const Term& t : sum.terms) {
    const bool whole = t.coefficient % divisor == 0;
    (whole ? result.multiples : result.rest).terms.push_back({t.part, whole ? t.coefficient / divisor : t.coefficient});
  }
  result.multiples.constant = int64_t(floor_div(sum.constant, divisor));
  result.rest.constant = int64_t(floor_mod(sum.constant, divisor));
  return result;
}

// Whether the type has every number of the sum: then its expression means the sum wherever it does not wrap.
bool is_sum_of(DType type, const Sum& sum) {
  const auto has = [&](int64_t value) { return Bounds{value, value}.within(type_bounds(type)); };
  return has(sum.constant) &&
         std::all_of(sum.terms.begin(), sum.terms.end(), [&](const Term& t) { return has(t.coefficient); });
}

bool is_nothing(const Sum& sum) { return sum.terms.empty() && sum.constant == 0; }

// The divisors of c that could split the sum, largest first.
std::set<int64_t, std::greater<>> useful_divisors(const Sum& sum, int64_t c) {
  std::set<int64_t, std::greater<>> result{c};
  for (const Term& t : sum.terms) {
    if (t.coefficient != INT64_MIN) result.insert(std::gcd(t.coefficient, c));
  }
  result.erase(1);
  return result;
}

class Division {
 public:
  Division(const Expr& e, const Binary& n, int64_t c, const VarRanges& ranges)
      : quotient_(n.op == BinaryOp::floor_div), type_(e->type), span_(e->span), c_(c), ranges_(ranges) {}

  Expr of(const Sum& sum) const {
    for (const int64_t divisor : useful_divisors(sum, c_)) {
      const Split parts = split(sum, divisor);
      if (is_nothing(parts.multiples) || !is_sum_of(type_, parts.multiples) || !is_sum_of(type_, parts.rest)) continue;
      const Expr rest = build(parts.rest, type_, span_);
      if (may_wrap(rest, ranges_)) continue;
      if (bounds(rest, ranges_).within({0, divisor - 1})) return small_rest(parts, rest, divisor);
      if (divisor == c_) return large_rest(parts, rest);
    }
    return nullptr;
  }

 private:
  bool quotient_;
  DType type_;
  Span span_;
  int64_t c_;
  const VarRanges& ranges_;

  Expr literal(int64_t value) const { return int_imm(value, type_, span_); }
  Expr make(BinaryOp op, Expr left, Expr right) const { return binary(op, std::move(left), std::move(right), span_); }

  // 0 <= rest < divisor, which divides c.
  Expr small_rest(const Split& parts, const Expr& rest, int64_t divisor) const {
    const Expr multiples = build(parts.multiples, type_, span_);
    if (may_wrap(multiples, ranges_)) return nullptr;
    if (divisor == c_) return quotient_ ? multiples : rest;
    const Expr outer = literal(c_ / divisor);
    if (quotient_) return make(BinaryOp::floor_div, multiples, outer);
    const Expr whole = make(BinaryOp::mul, make(BinaryOp::floor_mod, multiples, outer), literal(divisor));
    return make(BinaryOp::add, whole, rest);
  }

  // The divisor is c.
  Expr large_rest(const Split& parts, const Expr& rest) const {
    if (!quotient_) return make(BinaryOp::floor_mod, rest, literal(c_));
    const Expr multiples = build(parts.multiples, type_, span_);
    if (may_wrap(multiples, ranges_)) return nullptr;
    return make(BinaryOp::add, multiples, make(BinaryOp::floor_div, rest, literal(c_)));
  }
};

}  // namespace

Sum sum_of(const Expr& e) {
  Summing summing;
  summing.add(e, 1);
  std::erase_if(summing.sum.terms, [](const Term& t) { return t.coefficient == 0; });
  return std::move(summing.sum);
}

Expr collect_terms(const Expr& e) {
  const Sum sum = sum_of(e);
  const int parts = int(sum.terms.size()) + (sum.constant != 0 ? 1 : 0);
  if (!sum.fits || sum.leaves <= std::max(parts, 1)) return nullptr;
  return build(sum, e->type, e->span);
}

Expr divide_sum(const Expr& e, const VarRanges& ranges) {
  const auto& n = std::get<Binary>(e->node);
  const auto c = constant_int(n.right);
  if (!c || *c <= 1 || may_wrap(n.left, ranges)) return nullptr;
  const Sum sum = sum_of(n.left);
  return sum.fits ? Division(e, n, *c, ranges).of(sum) : nullptr;
}

}  // namespace tilepilot::passes
