#include "compiler/targets/c/integer_facts.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/search.h"
#include "compiler/ir/visit.h"

namespace tilepilot::targets::c {

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

namespace {

// What variables are multiples of.
using Multiples = std::unordered_map<const ir::VarData*, int64_t>;

// Of `var % factor == 0`, and conjunctions.
void collect_multiples(const ir::Expr& condition, Multiples& multiples) {
  const auto* node = ir::as<ir::Binary>(condition);
  if (!node) return;
  if (node->op == ir::BinaryOp::logical_and) {
    collect_multiples(node->left, multiples);
    collect_multiples(node->right, multiples);
  }
  const auto* rest = ir::as<ir::Binary>(node->left);
  const bool divides =
      node->op == ir::BinaryOp::eq && ir::constant_int(node->right) == 0 && rest && rest->op == ir::BinaryOp::floor_mod;
  const auto* ref = divides ? ir::as<ir::VarRef>(rest->left) : nullptr;
  const auto factor = divides ? ir::constant_int(rest->right) : std::nullopt;
  if (ref && factor && *factor > 0 && *factor <= INT32_MAX) {
    int64_t& known = multiples.try_emplace(ref->var.get(), 1).first->second;
    known = std::max(known, *factor);
  }
}

// Where all terms are multiples of a number, a form that is not negative has the largest such constant below its own.
void tighten(ir::Affine& form, const Multiples& multiples) {
  int64_t step = 0;
  for (const auto& [var, coefficient] : form.terms) {
    if (std::abs(coefficient) > INT32_MAX) return;
    const auto known = multiples.find(var.get());
    step = std::gcd(step, coefficient * (known == multiples.end() ? 1 : known->second));
  }
  if (step > 1 && form.constant > INT64_MIN + step) form.constant = ir::floor_div(form.constant, step) * step;
}

}  // namespace

void IntegerFacts::set_range(const ir::Var& var, ir::Bounds range) {
  known_.push_back(var);
  ranges_[var.get()] = range;
  exact_lets_.clear();
}

void IntegerFacts::set_value(const ir::Var& var, ir::Expr value) {
  known_.push_back(var);
  values_[var.get()] = std::move(value);
  exact_lets_.clear();
}

void IntegerFacts::learn(const ir::Kernel& kernel) {
  std::vector<std::pair<ir::Var, ir::Expr>> extents;
  const auto set_extent = [&](const ir::Var& var, const ir::Expr& extent, int64_t most) {
    set_range(var, {0, std::clamp<int64_t>(range(extent).hi, 1, most) - 1});
    if (!ir::constant_int(extent)) extents.emplace_back(var, extent);
  };
  for (size_t axis = 0; axis < kernel.block_vars.size(); ++axis)
    set_extent(kernel.block_vars[axis], kernel.grid[axis], kLargestGrid);
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        const auto* let = std::get_if<ir::Let>(&stmt->node);
        if (let != nullptr && is_index_arithmetic(let->value)) set_value(let->var, let->value);
        if (let != nullptr && let->value->type.is_bool()) {
          known_.push_back(let->var);
          conditions_[let->var.get()] = let->value;
        }
        const auto* loop = std::get_if<ir::For>(&stmt->node);
        for (size_t k = 0; loop != nullptr && k < loop->vars.size(); ++k)
          set_extent(loop->vars[k], loop->extents[k], INT64_MAX);
      },
      [](const ir::Expr&) {});
  for (const auto& [var, extent] : extents) learn_extent(var, extent);
}

// var < extent; of a quotient a / c: c * var + c <= a.
void IntegerFacts::learn_extent(const ir::Var& var, const ir::Expr& extent) {
  const auto* quotient = ir::as<ir::Binary>(extent);
  const bool divides = quotient && quotient->op == ir::BinaryOp::floor_div;
  const auto divisor = divides ? ir::constant_int(quotient->right) : std::optional<int64_t>(1);
  const ir::Expr& end = divides ? quotient->left : extent;
  if (!divisor || *divisor < 1 || !is_exact(end)) return;
  const auto room = affine(end);
  auto left = room ? ir::difference(*room, ir::Affine{{{var, *divisor}}, 0}) : std::nullopt;
  if (!left || left->constant < INT64_MIN + *divisor) return;
  left->constant -= *divisor;
  assumed_.push_back(std::move(*left));
}

void IntegerFacts::trust(const ir::Kernel& kernel) {
  Multiples multiples;
  for (const ir::Expr& condition : kernel.assumptions) {
    assume(condition);
    collect_multiples(condition, multiples);
  }
  if (multiples.empty()) return;
  for (ir::Affine& form : assumed_) tighten(form, multiples);
}

std::optional<ir::Bounds> IntegerFacts::exact(const ir::Var& var) const {
  const auto value = values_.find(var.get());
  if (value == values_.end()) {
    const auto known = ranges_.find(var.get());
    return known != ranges_.end() ? known->second : ir::type_bounds(var->type);
  }
  if (const auto found = exact_lets_.find(var.get()); found != exact_lets_.end()) return found->second;
  auto result = exact(value->second);
  if (const auto narrowed = ranges_.find(var.get()); result && narrowed != ranges_.end()) {
    const ir::Bounds both{std::max(result->lo, narrowed->second.lo), std::min(result->hi, narrowed->second.hi)};
    if (both.lo <= both.hi) result = both;
  }
  exact_lets_.emplace(var.get(), result);
  return result;
}

std::optional<ir::Bounds> IntegerFacts::exact(const ir::Binary& node) const {
  using ir::BinaryOp;
  using ir::Wide;
  const auto a = exact(node.left), b = exact(node.right);
  if (!a || !b) return std::nullopt;
  const auto hull = [](std::initializer_list<Wide> ends) -> std::optional<ir::Bounds> {
    const Wide lo = std::min(ends), hi = std::max(ends);
    if (lo < INT64_MIN || hi > INT64_MAX) return std::nullopt;
    return ir::Bounds{int64_t(lo), int64_t(hi)};
  };
  switch (node.op) {
    case BinaryOp::add:
      return hull({Wide{a->lo} + b->lo, Wide{a->hi} + b->hi});
    case BinaryOp::sub:
      return hull({Wide{a->lo} - b->hi, Wide{a->hi} - b->lo});
    case BinaryOp::mul:
      return hull({Wide{a->lo} * b->lo, Wide{a->lo} * b->hi, Wide{a->hi} * b->lo, Wide{a->hi} * b->hi});
    case BinaryOp::min:
      return ir::Bounds{std::min(a->lo, b->lo), std::min(a->hi, b->hi)};
    case BinaryOp::max:
      return ir::Bounds{std::max(a->lo, b->lo), std::max(a->hi, b->hi)};
    case BinaryOp::floor_div:
      if (b->lo <= 0) return std::nullopt;
      return hull({ir::floor_div(a->lo, b->lo), ir::floor_div(a->lo, b->hi), ir::floor_div(a->hi, b->lo),
                   ir::floor_div(a->hi, b->hi)});
    case BinaryOp::floor_mod:
      if (b->lo <= 0) return std::nullopt;
      if (a->lo >= 0 && a->hi < b->lo) return a;
      return ir::Bounds{0, a->lo >= 0 ? std::min(a->hi, b->hi - 1) : b->hi - 1};
    default:
      return std::nullopt;
  }
}

std::optional<ir::Bounds> IntegerFacts::exact(const ir::Expr& expr) const {
  if (!is_index_arithmetic(expr)) return std::nullopt;
  using Maybe = std::optional<ir::Bounds>;
  return std::visit(ir::overloaded{
                        [](const ir::IntImm& node) -> Maybe {
                          return ir::Bounds{node.value, node.value};
                        },
                        [&](const ir::VarRef& node) { return exact(node.var); },
                        [&](const ir::Unary& node) -> Maybe {
                          const auto value = exact(node.operand);
                          if (!value || value->lo == INT64_MIN) return std::nullopt;
                          return ir::Bounds{-value->hi, -value->lo};
                        },
                        [&](const ir::Binary& node) { return exact(node); },
                        [&](const ir::Cast& node) { return exact(node.value); },
                        [](const auto&) -> Maybe { return std::nullopt; },
                    },
                    expr->node);
}

ir::Expr IntegerFacts::expand_exact(const ir::Expr& expr) const {
  if (values_.empty()) return expr;
  return ir::substitute(expr, [&](const ir::Var& var) -> ir::Expr {
    const auto found = values_.find(var.get());
    if (found == values_.end()) return nullptr;
    const auto known = exact(var);
    return known && known->within(ir::type_bounds(var->type)) ? expand_exact(found->second) : nullptr;
  });
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
  constexpr ir::Bounds kAll{INT64_MIN, INT64_MAX};
  ir::VarRanges ranges;
  for (const auto& term : form.terms) ranges[term.var.get()] = exact(term.var).value_or(kAll);
  return ir::bounds(form, ranges).value_or(kAll);
}

ir::Bounds IntegerFacts::index_range(const ir::Expr& expr) const {
  constexpr ir::Bounds kAll{INT64_MIN, INT64_MAX};
  if (!expr->type.is_int()) return kAll;
  if (!is_index_arithmetic(expr)) return ir::bounds(expand_exact(expr), ranges_);
  const auto computed = exact(expr);
  if (!computed) return kAll;
  const auto form = affine(expr);
  const ir::Bounds sum = form ? range(*form) : kAll;
  return {std::max(sum.lo, computed->lo), std::min(sum.hi, computed->hi)};
}

ir::Bounds IntegerFacts::range(const ir::Expr& expr) const {
  const ir::Bounds found = index_range(expr), type = ir::type_bounds(expr->type);
  // In its own type index arithmetic may wrap all the same.
  return found.within(type) ? found : ir::Bounds{std::min(found.lo, type.lo), std::max(found.hi, type.hi)};
}

bool IntegerFacts::in_bounds(const ir::Expr& index, const ir::Expr& extent) const {
  const auto position = is_exact(index) ? affine(index) : std::nullopt;
  if (index_range(index).lo < 0) {
    ir::Affine next = position.value_or(ir::Affine{});
    next.constant += 1;
    if (!position || !is_positive(next)) return false;
  }
  const auto end = is_exact(extent) ? affine(extent) : std::nullopt;
  if (position && end) {
    const auto room = ir::difference(*end, *position);
    if (room && is_positive(*room)) return true;
  }
  return index_range(index).hi < index_range(extent).lo;
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
  const auto named = [&](const ir::Var& var) -> ir::Expr {
    const auto found = conditions_.find(var.get());
    return found == conditions_.end() ? nullptr : found->second;
  };
  collect_comparisons(*this, conditions_.empty() ? condition : ir::substitute(condition, named), assumed_);
  for (size_t fact = before; fact < assumed_.size(); ++fact) narrow(fact);
  return assumed_.size() - before;
}

// A form of one variable alone is a bound of it.
void IntegerFacts::narrow(size_t fact) {
  const ir::Affine& form = assumed_[fact];
  if (form.terms.size() != 1 || form.constant == INT64_MIN) return;
  const auto& [var, coefficient] = form.terms[0];
  if (coefficient == INT64_MIN) return;
  const auto known = ranges_.find(var.get());
  ir::Bounds range = known != ranges_.end() ? known->second : ir::type_bounds(var->type);
  if (coefficient > 0)
    range.lo = std::max(range.lo, int64_t(-ir::floor_div(form.constant, coefficient)));
  else
    range.hi = std::min(range.hi, int64_t(ir::floor_div(form.constant, -coefficient)));
  if (range.lo > range.hi || (known != ranges_.end() && range == known->second)) return;
  narrowed_.push_back({fact, var.get(), known != ranges_.end() ? std::optional(known->second) : std::nullopt});
  known_.push_back(var);
  ranges_[var.get()] = range;
  exact_lets_.clear();
}

void IntegerFacts::forget(size_t facts) {
  assumed_.resize(assumed_.size() - facts);
  for (; !narrowed_.empty() && narrowed_.back().fact >= assumed_.size(); narrowed_.pop_back()) {
    const Narrowed& last = narrowed_.back();
    if (last.before)
      ranges_[last.var] = *last.before;
    else
      ranges_.erase(last.var);
    exact_lets_.clear();
  }
}

namespace {

// e // divisor + constant, divisor > 0
struct Quotient {
  ir::Expr e;
  int64_t divisor, constant;
};

std::optional<Quotient> as_quotient(const ir::Expr& expr) {
  using ir::BinaryOp;
  const auto* node = ir::as<ir::Binary>(expr);
  if (node == nullptr) return std::nullopt;
  const auto number = ir::constant_int(node->right);
  if (!number) return std::nullopt;
  if (node->op == BinaryOp::floor_div && *number > 0) return Quotient{node->left, *number, 0};
  if (node->op != BinaryOp::add && node->op != BinaryOp::sub) return std::nullopt;
  auto inner = as_quotient(node->left);
  const bool overflows =
      inner && (node->op == BinaryOp::add ? __builtin_add_overflow(inner->constant, *number, &inner->constant)
                                          : __builtin_sub_overflow(inner->constant, *number, &inner->constant));
  return overflows ? std::nullopt : inner;
}

// a * first + b * second + constant; nullopt if a number leaves 64 bits.
std::optional<ir::Affine> combined(const ir::Affine& a, int64_t first, const ir::Affine& b, int64_t second,
                                   ir::Wide constant) {
  ir::Affine result;
  const auto fits = [](ir::Wide value) { return value >= INT64_MIN && value <= INT64_MAX; };
  constant += ir::Wide(a.constant) * first + ir::Wide(b.constant) * second;
  if (!fits(constant)) return std::nullopt;
  result.constant = static_cast<int64_t>(constant);
  const auto add = [&](const ir::Var& var) {
    const ir::Wide sum = ir::Wide(a.coefficient(var)) * first + ir::Wide(b.coefficient(var)) * second;
    if (sum != 0 && fits(sum) && result.coefficient(var) == 0) result.terms.push_back({var, static_cast<int64_t>(sum)});
    return fits(sum);
  };
  const auto add_all = [&](const ir::Affine& form) {
    return std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& term) { return add(term.var); });
  };
  return add_all(a) && add_all(b) ? std::optional(std::move(result)) : std::nullopt;
}

// lesser <= greater, or lesser < greater, where one side is a quotient: a comparison of what it divides.
std::optional<ir::Affine> compared_quotient(const IntegerFacts& facts, const ir::Expr& lesser, const ir::Expr& greater,
                                            bool strict) {
  const auto low = as_quotient(facts.expand(lesser)), high = as_quotient(facts.expand(greater));
  if (low.has_value() == high.has_value()) return std::nullopt;
  const Quotient& quotient = low ? *low : *high;
  const auto other = facts.affine(low ? greater : lesser), divided = facts.affine(quotient.e);
  if (!other || !divided) return std::nullopt;
  const int64_t c = quotient.divisor;
  const ir::Wide gap = ir::Wide(quotient.constant) + (low ? int64_t{strict} : -int64_t{strict});
  // e // c + k <= x - s: e <= c * (x - s - k) + c - 1. And x + s <= e // c + k: c * (x + s - k) <= e.
  return low ? combined(*other, c, *divided, -1, c - 1 - c * gap) : combined(*other, -c, *divided, 1, c * gap);
}

}  // namespace

bool collect_comparisons(const IntegerFacts& facts, const ir::Expr& condition, std::vector<ir::Affine>& forms) {
  using ir::BinaryOp;
  const auto* node = std::get_if<ir::Binary>(&condition->node);
  if (node == nullptr) return false;
  if (node->op == BinaryOp::logical_and)
    return collect_comparisons(facts, node->left, forms) && collect_comparisons(facts, node->right, forms);
  const bool less = node->op == BinaryOp::lt || node->op == BinaryOp::le;
  const bool greater = node->op == BinaryOp::gt || node->op == BinaryOp::ge;
  if (!less && !greater) return false;
  if (!facts.is_exact(node->left) || !facts.is_exact(node->right)) return false;
  const bool strict = node->op == BinaryOp::lt || node->op == BinaryOp::gt;
  const auto left = facts.affine(node->left), right = facts.affine(node->right);
  if (!left || !right) {
    auto form = less ? compared_quotient(facts, node->left, node->right, strict)
                     : compared_quotient(facts, node->right, node->left, strict);
    if (form) forms.push_back(std::move(*form));
    return form.has_value();
  }
  auto room = less ? ir::difference(*right, *left) : ir::difference(*left, *right);
  if (!room) return false;
  if (strict) room->constant -= 1;
  forms.push_back(*room);
  return true;
}

}  // namespace tilepilot::targets::c
