#include "compiler/targets/gpu/layout/lane_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/targets/gpu/facts/coordinates.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;

namespace {

constexpr int64_t kMostBytes = 256;  // in registers, for the lanes of one loop

// Quotients and remainders of sums whose terms are all multiples of the divisor: the constant alone says what is left.
class Divided : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit Divided(const c::IntegerFacts& facts) : facts_(facts) {}

  Expr rewrite(const Expr& expr) override {
    const Expr inner = rewrite_children(expr);
    const auto* node = ir::as<ir::Binary>(inner);
    if (node == nullptr || (node->op != BinaryOp::floor_div && node->op != BinaryOp::floor_mod)) return inner;
    const int64_t by = ir::constant_int(node->right).value_or(0);
    const auto sum = by > 0 ? facts_.affine(node->left) : std::nullopt;
    if (!sum || std::any_of(sum->terms.begin(), sum->terms.end(),
                            [&](const ir::Affine::Term& term) { return term.coefficient % by != 0; }))
      return inner;
    const auto fixed = [&](ir::Wide value) { return ir::int_imm(static_cast<int64_t>(value), inner->type); };
    if (node->op == BinaryOp::floor_mod) return fixed(ir::floor_mod(sum->constant, by));
    Expr result = fixed(ir::floor_div(sum->constant, by));
    for (const ir::Affine::Term& term : sum->terms)
      result = ir::binary(BinaryOp::add, result,
                          ir::binary(BinaryOp::mul, ir::cast(ir::var_ref(term.var), inner->type),
                                     ir::int_imm(term.coefficient / by, inner->type)));
    return result;
  }

 private:
  const c::IntegerFacts& facts_;
};

Expr at_lane(const Expr& expr, const ir::Var& lane, int64_t number) {
  return ir::substitute(expr,
                        [&](const ir::Var& var) { return var == lane ? ir::int_imm(number, lane->type) : nullptr; });
}

// An index as its value for lane 0, and how far the other lanes' lie behind it; one more than there are lanes.
struct Steps {
  ir::Affine start;
  std::vector<int64_t> behind;
};
std::optional<Steps> steps_of(const c::IntegerFacts& facts, const Expr& index, const ir::Var& lane, int64_t lanes) {
  const auto value = [&](int64_t number) { return facts.affine(Divided(facts).rewrite(at_lane(index, lane, number))); };
  const auto start = value(0);
  if (!start) return std::nullopt;
  Steps steps{*start, {0}};
  const auto sum = facts.affine(index);
  for (int64_t number = 1; number <= lanes; ++number) {
    if (sum) {
      steps.behind.push_back(sum->coefficient(lane) * number);
      continue;
    }
    const auto other = value(number);
    const auto difference = other ? ir::difference(*other, *start) : std::nullopt;
    if (!difference || !difference->is_constant()) return std::nullopt;
    steps.behind.push_back(difference->constant);
  }
  return steps;
}

// What tells where an index starts, but for a constant, which is taken away from `start`.
std::string base_of(const c::IntegerFacts& facts, const Expr& index, int64_t& origin) {
  const auto sum = facts.affine(index);
  if (!sum) return ir::to_text(index);
  origin += sum->constant;
  std::vector<std::string> terms;
  for (const ir::Affine::Term& term : sum->terms)
    terms.push_back(fmt::format("{} {}", static_cast<const void*>(term.var.get()), term.coefficient));
  std::sort(terms.begin(), terms.end());
  std::string text;
  for (const std::string& term : terms) text += term + "+";
  return text;
}

// The elements that are loaded at once, as far as rows and the index leave it open.
int64_t common_elements(const Surroundings& around, const Buffer& buffer, size_t rank, const Steps& steps) {
  const int64_t most = buffer->scope == ir::Scope::global ? alignment_of(*buffer) : kAccessBytes;
  int64_t elements = std::max<int64_t>(1, most / buffer->type.bytes());
  for (const ir::Affine::Term& term : steps.start.terms) elements = std::gcd(elements, term.coefficient);
  elements = std::gcd(elements, steps.behind.back());  // neighbours that follow these begin there
  if (rank == 1) return elements;
  const auto distances = row_steps(around, buffer);
  if (!distances) return 1;
  for (const Multiple& distance : *distances) elements = std::gcd(elements, distance.of);
  return elements;
}

int64_t rounded_down(int64_t value, int64_t by) { return static_cast<int64_t>(ir::floor_div(value, by)) * by; }

}  // namespace

std::optional<LaneWindow> lane_window(const Surroundings& around, const Buffer& buffer,
                                      const std::vector<Expr>& indices, const ir::Var& lane, int64_t lanes) {
  const bool is_view = buffer->base && buffer->scope != ir::Scope::global;
  if (buffer->type.bits < 8 || is_view || buffer->address || indices.empty() || lanes < 2) return std::nullopt;
  if (!ir::mentions(indices.back(), lane)) return std::nullopt;
  for (size_t axis = 0; axis + 1 < indices.size(); ++axis)
    if (ir::mentions(indices[axis], lane)) return std::nullopt;
  const c::IntegerFacts& facts = around.facts;
  auto steps = steps_of(facts, unknowns_apart(facts.expand(indices.back()), lane), lane, lanes);
  if (!steps) steps = steps_of(facts, unknowns_apart(indices.back(), lane), lane, lanes);
  if (!steps) return std::nullopt;
  const auto last = steps->behind.end() - 1;
  const int64_t least = *std::min_element(steps->behind.begin(), last);
  const int64_t largest = *std::max_element(steps->behind.begin(), last);
  int64_t elements = common_elements(around, buffer, indices.size(), *steps);
  LaneWindow window{buffer, indices, {}, 0, 1, 0, 0, {}};
  for (Expr& index : window.start) index = at_lane(index, lane, 0);
  const Expr begin = window.start.back();
  const auto arrange = [&] {
    elements &= -elements;
    const int64_t own = static_cast<int64_t>(ir::floor_mod(steps->start.constant, elements));
    window.elements = elements;
    window.origin = -own;
    window.first = rounded_down(own + least, elements);
    window.count = rounded_down(own + largest, elements) + elements - window.first;
    window.start.back() = plus(begin, ir::int_imm(-own, begin->type));
    window.taken.clear();
    for (auto each = steps->behind.begin(); each != last; ++each) window.taken.push_back(own + *each);
  };
  arrange();
  const auto is_inside = [&](int64_t place) {
    return facts.in_bounds(plus(window.start.back(), ir::int_imm(place, begin->type)), buffer->shape.back());
  };
  if (!is_inside(window.first) || !is_inside(window.first + window.count - 1)) {
    if (buffer->scope != ir::Scope::global) return std::nullopt;
    elements = std::gcd(elements, row_length(*buffer).of);  // so that a vector lies in the row or outside
    arrange();
  }
  std::vector<int64_t> distinct(steps->behind.begin(), last);
  std::sort(distinct.begin(), distinct.end());
  const int64_t wanted = std::unique(distinct.begin(), distinct.end()) - distinct.begin();
  if (elements < 2 || window.loads() >= wanted || window.count * buffer->type.bytes() > kMostBytes) return std::nullopt;
  if (!place_in_window(window.taken, 0, lane)) return std::nullopt;
  window.base = fmt::format("{} {} {} ", static_cast<const void*>(buffer.get()), elements, begin->type.bits);
  for (size_t axis = 0; axis + 1 < indices.size(); ++axis) window.base += ir::to_text(indices[axis]) + ";";
  window.base += base_of(facts, begin, window.origin);
  return window;
}

std::optional<LaneWindow> joined(const LaneWindow& a, const LaneWindow& b) {
  if (a.base != b.base) return std::nullopt;
  const int64_t shift = b.origin - a.origin, other = b.first + shift;
  if (shift % a.elements != 0 || other >= a.first + a.count || a.first >= other + b.count) return std::nullopt;
  LaneWindow both = a;
  both.first = std::min(a.first, other);
  both.count = std::max(a.first + a.count, other + b.count) - both.first;
  if (both.count * a.buffer->type.bytes() > kMostBytes) return std::nullopt;
  return both;
}

bool is_all_taken(const LaneWindow& all, const std::vector<const LaneWindow*>& parts) {
  std::set<int64_t> taken;
  for (const LaneWindow* part : parts)
    for (const int64_t place : part->taken) taken.insert(place + part->origin - all.origin);
  return static_cast<int64_t>(taken.size()) == all.count;
}

bool is_covered(const LaneWindow& all, const std::vector<const LaneWindow*>& parts) {
  size_t taken = 0;
  for (const LaneWindow* part : parts) taken += part->taken.size();
  return static_cast<int64_t>(taken) == all.count && is_all_taken(all, parts);
}

Expr place_in_window(const std::vector<int64_t>& taken, int64_t first, const ir::Var& lane) {
  const Expr number = ir::cast(ir::var_ref(lane), ir::kInt32);
  const auto fits = [&](const auto& function) {
    for (size_t k = 0; k < taken.size(); ++k)
      if (taken[k] - taken[0] != function(static_cast<int64_t>(k))) return false;
    return true;
  };
  const auto from_start = [&](const Expr& steps) { return plus(steps, ir::int_imm(taken[0] - first)); };
  const int64_t step = taken.size() > 1 ? taken[1] - taken[0] : 0;
  if (fits([&](int64_t k) { return k * step; })) return from_start(times(number, step));
  for (int64_t by = 2; by <= static_cast<int64_t>(taken.size()); by *= 2) {
    for (int64_t ahead = 0; ahead < by; ++ahead)
      if (fits([&](int64_t k) { return (k + ahead) / by; }))
        return from_start(quotient(plus(number, ir::int_imm(ahead)), by));
    if (fits([&](int64_t k) { return k % by; })) return from_start(remainder(number, by));
  }
  return nullptr;
}

}  // namespace tilepilot::targets::gpu
