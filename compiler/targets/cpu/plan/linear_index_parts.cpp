#include "compiler/targets/cpu/plan/linear_index_parts.h"

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kLargestCoefficient = int64_t{1} << 40;

bool is_division(const ir::Binary& node) {
  return (node.op == ir::BinaryOp::floor_div || node.op == ir::BinaryOp::floor_mod) &&
         ir::constant_int(node.right).value_or(0) > 0;
}

}  // namespace

bool IndexPartRewriter::is_about_numbers(const ir::Expr& expr) const {
  bool found = false;
  ir::walk(expr, [&](const ir::Expr& part) {
    const auto* ref = std::get_if<ir::VarRef>(&part->node);
    found = found || (ref != nullptr && numbering_.variables.contains(ref->var.get()));
  });
  return found;
}

ir::Expr IndexPartRewriter::rewrite(const ir::Expr& expr) {
  const Sum result = sum(expr);
  const ir::Bounds values = range(result);
  const ir::Bounds fits = ir::type_bounds(expr->type);
  // As the program has it, an index is a mathematical integer; a value wraps.
  succeeded_ = succeeded_ && values.lo >= fits.lo && values.hi <= fits.hi;
  return build(result, expr->type);
}

ir::Var IndexPartRewriter::number(const ir::Expr& expr) {
  if (!c::is_index_arithmetic(expr)) return nullptr;
  const Sum result = sum(expr);
  if (result.constant != 0 || result.terms.size() != 1 || result.terms[0].coefficient != 1) return nullptr;
  const IndexPart& part = result.terms[0].part;
  return part.low == 1 && part.high == 0 ? part.number : nullptr;
}

IndexPartRewriter::Sum IndexPartRewriter::sum(const ir::Expr& expr) {
  if (const auto constant = ir::constant_int(expr)) return {{}, *constant};
  if (const auto* ref = std::get_if<ir::VarRef>(&expr->node)) {
    const auto known = numbering_.variables.find(ref->var.get());
    Sum result;
    const bool is_part = known != numbering_.variables.end();
    add(result, is_part ? Term{known->second, nullptr, {}, 1} : Term{{}, expr, facts_.range(expr), 1});
    return result;
  }
  if (const auto* node = std::get_if<ir::Cast>(&expr->node)) return sum(node->value);
  if (const auto* node = std::get_if<ir::Unary>(&expr->node)) return scaled(sum(node->operand), -1);
  const auto& node = std::get<ir::Binary>(expr->node);
  if (node.op == ir::BinaryOp::add || node.op == ir::BinaryOp::sub) {
    Sum result = sum(node.left);
    add(result, sum(node.right), node.op == ir::BinaryOp::add ? 1 : -1);
    return result;
  }
  if (node.op == ir::BinaryOp::mul) return product(node, expr);
  return is_division(node) ? division(node, expr) : opaque(expr);
}

IndexPartRewriter::Sum IndexPartRewriter::product(const ir::Binary& node, const ir::Expr& expr) {
  const Sum left = sum(node.left), right = sum(node.right);
  if (right.terms.empty()) return scaled(left, right.constant);
  return left.terms.empty() ? scaled(right, left.constant) : opaque(expr);
}

// sum // c or sum % c
IndexPartRewriter::Sum IndexPartRewriter::division(const ir::Binary& node, const ir::Expr& expr) {
  const bool is_quotient = node.op == ir::BinaryOp::floor_div;
  const int64_t divisor = *ir::constant_int(node.right);
  const Sum all = sum(node.left);
  Sum quotient, rest;  // all = divisor * quotient + rest
  for (const Term& term : all.terms) {
    const bool whole = term.coefficient % divisor == 0;
    add(whole ? quotient : rest,
        {term.part, term.other, term.values, whole ? term.coefficient / divisor : term.coefficient});
  }
  quotient.constant = static_cast<int64_t>(ir::floor_div(all.constant, divisor));
  rest.constant = static_cast<int64_t>(ir::floor_mod(all.constant, divisor));
  if (range(rest).within({0, divisor - 1})) return is_quotient ? quotient : rest;
  if (rest.terms.size() == 1 && rest.terms[0].part.number != nullptr) {
    const auto& [part, other, values, coefficient] = rest.terms[0];
    const bool divides = coefficient > 0 && divisor % coefficient == 0 && rest.constant < coefficient;
    const int64_t cut = divides ? part.low * (divisor / coefficient) : 0;
    if (divides && cut < kLargestCoefficient && (part.high == 0 || part.high % cut == 0)) {
      if (is_quotient) {
        add(quotient, {{part.number, cut, part.high}, nullptr, {}, 1});
        return quotient;
      }
      Sum result{{}, rest.constant};
      add(result, {{part.number, part.low, cut}, nullptr, {}, coefficient});
      return result;
    }
  }
  const ir::DType type = node.left->type;
  const ir::Expr divided = ir::binary(node.op, build(rest, type), ir::int_imm(divisor, type), expr->span);
  const ir::Bounds values = range(rest);
  const auto over = [&](int64_t value) { return static_cast<int64_t>(ir::floor_div(value, divisor)); };
  Sum result = is_quotient ? quotient : Sum{};
  add(result,
      {{}, divided, is_quotient ? ir::Bounds{over(values.lo), over(values.hi)} : ir::Bounds{0, divisor - 1}, 1});
  return result;
}

// Something of another form, of which the operands are rewritten.
IndexPartRewriter::Sum IndexPartRewriter::opaque(const ir::Expr& expr) {
  const auto& node = std::get<ir::Binary>(expr->node);
  const Sum left = sum(node.left), right = sum(node.right);
  const ir::Bounds x = range(left), y = range(right);
  ir::Bounds values = ir::type_bounds(expr->type);
  if (node.op == ir::BinaryOp::min) values = {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
  if (node.op == ir::BinaryOp::max) values = {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  const ir::Expr other = ir::binary(node.op, build(left, node.left->type), build(right, node.right->type), expr->span);
  return {{{{}, other, values, 1}}, 0};
}

IndexPartRewriter::Sum IndexPartRewriter::scaled(Sum sum, int64_t factor) {
  Sum result;
  add(result, sum, factor);
  return result;
}

void IndexPartRewriter::add(Sum& to, const Sum& more, int64_t factor) {
  const auto is_small = [&](int64_t value) { return std::abs(value) < kLargestCoefficient; };
  succeeded_ = succeeded_ && is_small(factor) && is_small(more.constant) && is_small(to.constant);
  if (!succeeded_) return;
  const auto times = [&](int64_t value) {
    const auto product = ir::Wide{value} * factor;
    succeeded_ = succeeded_ && product < kLargestCoefficient && product > -kLargestCoefficient;
    return static_cast<int64_t>(product);
  };
  to.constant += times(more.constant);
  for (const Term& term : more.terms) add(to, {term.part, term.other, term.values, times(term.coefficient)});
}

void IndexPartRewriter::add(Sum& to, Term term) {
  if (term.part.number != nullptr) {
    const auto known = numbering_.extents.find(term.part.number.get());
    const int64_t extent = known == numbering_.extents.end() ? 0 : known->second;
    if (extent > 0 && term.part.high >= extent) term.part.high = 0;
    if (extent > 0 && term.part.low >= extent) return;
  }
  const auto same = std::find_if(to.terms.begin(), to.terms.end(), [&](const Term& other) {
    if (term.part.number != nullptr) return other.part == term.part;
    return other.part.number == nullptr && ir::structurally_equal(other.other, term.other);
  });
  if (same == to.terms.end())
    to.terms.push_back(std::move(term));
  else
    same->coefficient += term.coefficient;
  std::erase_if(to.terms, [](const Term& each) { return each.coefficient == 0; });
  while (join(to)) {}
}

// Two parts that are one together: i // 8 * 8 + i % 8, i - i // 8 * 8.
bool IndexPartRewriter::join(Sum& sum) const {
  for (size_t a = 0; a < sum.terms.size(); ++a)
    for (size_t b = 0; b < sum.terms.size(); ++b) {
      Term &upper = sum.terms[a], &lower = sum.terms[b];
      if (a == b || lower.part.number == nullptr || upper.part.number != lower.part.number) continue;
      if (upper.part.low <= lower.part.low || upper.part.low % lower.part.low != 0) continue;
      const int64_t step = upper.part.low / lower.part.low;
      const bool continues = upper.part.low == lower.part.high && upper.coefficient == lower.coefficient * step;
      const bool cancels = upper.part.high == lower.part.high && upper.coefficient == -lower.coefficient * step;
      if (!continues && !cancels) continue;
      lower.part.high = continues ? upper.part.high : upper.part.low;
      sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(a));
      return true;
    }
  return false;
}

ir::Bounds IndexPartRewriter::range(const Term& term) const {
  if (term.part.number == nullptr) return term.values;
  const auto known = numbering_.extents.find(term.part.number.get());
  const int64_t extent = known != numbering_.extents.end() && known->second > 0 ? known->second : c::kLargestGrid;
  const int64_t end = term.part.high > 0 ? std::min(term.part.high, extent) : extent;
  return {0, (end - 1) / term.part.low};
}

ir::Bounds IndexPartRewriter::range(const Sum& sum) const {
  ir::Wide lo = sum.constant, hi = sum.constant;
  for (const Term& term : sum.terms) {
    const ir::Bounds values = range(term);
    const ir::Wide a = ir::Wide{values.lo} * term.coefficient, b = ir::Wide{values.hi} * term.coefficient;
    lo += std::min(a, b);
    hi += std::max(a, b);
  }
  const auto clamped = [](ir::Wide value) {
    return static_cast<int64_t>(std::clamp<ir::Wide>(value, INT64_MIN, INT64_MAX));
  };
  return {clamped(lo), clamped(hi)};
}

ir::Expr IndexPartRewriter::build(const Sum& sum, ir::DType type) {
  ir::Expr result;
  for (const Term& term : sum.terms) {
    ir::Expr value = ir::cast(term.part.number ? write_(term.part) : term.other, type);
    const int64_t size = std::abs(term.coefficient);
    if (size != 1) value = ir::binary(ir::BinaryOp::mul, value, ir::int_imm(size, type));
    if (result == nullptr)
      result = term.coefficient > 0 ? value : ir::unary(ir::UnaryOp::neg, value);
    else
      result = ir::binary(term.coefficient > 0 ? ir::BinaryOp::add : ir::BinaryOp::sub, result, value);
  }
  if (result == nullptr) return ir::int_imm(sum.constant, type);
  if (sum.constant == 0) return result;
  return ir::binary(sum.constant > 0 ? ir::BinaryOp::add : ir::BinaryOp::sub, result,
                    ir::int_imm(std::abs(sum.constant), type));
}

}  // namespace tilepilot::targets::cpu
