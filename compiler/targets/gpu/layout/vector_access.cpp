#include "compiler/targets/gpu/layout/vector_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/coordinates.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Scope;

namespace {

// The largest power of two that divides the form; lanes apart.
int64_t divisor(const ir::Affine& form, const ir::Var& lane, int64_t most) {
  int64_t result = std::gcd(most, form.constant);
  for (const ir::Affine::Term& term : form.terms)
    if (term.var != lane) result = std::gcd(result, term.coefficient);
  return result;
}

bool is_same_comparison(const LaneCondition& where, const ir::Binary& node);

// Quotients and remainders of sums of which the lane is the last digit: if what else is in the sum, and the divisor,
// are multiples of the number of lanes, the lane never carries. Comparisons that come out alike for all lanes, as in an
// index that leaves the tensor where a mask says so, are those of the first one.
class LaneApart : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit LaneApart(const LaneCondition& where) : where_(where) {}

  Expr rewrite(const Expr& expr) override {
    const Expr inner = rewrite_children(expr);
    const auto* node = ir::as<ir::Binary>(inner);
    if (node == nullptr || !ir::mentions(inner, where_.lane)) return inner;
    if (is_comparison(node->op)) return is_same_comparison(where_, *node) ? of_first_lane(inner) : inner;
    if (node->op != ir::BinaryOp::floor_div && node->op != ir::BinaryOp::floor_mod) return inner;
    const auto by = ir::constant_int(node->right);
    if (!by || *by <= 0 || *by % where_.lanes != 0 || !ir::mentions(node->left, where_.lane)) return inner;
    const auto sum = where_.facts.affine(node->left);
    if (!sum || sum->coefficient(where_.lane) != 1 || divisor(*sum, where_.lane, where_.lanes) != where_.lanes)
      return inner;
    const Expr whole = ir::binary(node->op, of_first_lane(node->left), node->right, expr->span);
    if (node->op == ir::BinaryOp::floor_div) return whole;
    return ir::binary(ir::BinaryOp::add, whole, ir::cast(ir::var_ref(where_.lane), whole->type), expr->span);
  }

 private:
  const LaneCondition& where_;

  static bool is_comparison(ir::BinaryOp op) {
    return op == ir::BinaryOp::lt || op == ir::BinaryOp::le || op == ir::BinaryOp::gt || op == ir::BinaryOp::ge;
  }
  Expr of_first_lane(const Expr& expr) const {
    return ir::substitute(expr,
                          [&](const ir::Var& var) { return var == where_.lane ? ir::int_imm(0, var->type) : nullptr; });
  }
};

// See unknowns_apart.
class Unknowns : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit Unknowns(const ir::Var& lane) : lane_(lane) {}

  Expr rewrite(const Expr& expr) override {
    const auto* node = ir::as<ir::Binary>(expr);
    const bool divides =
        node && (node->op == ir::BinaryOp::floor_div || node->op == ir::BinaryOp::floor_mod) && expr->type.is_int();
    if (!divides || ir::mentions(expr, lane_)) return rewrite_children(expr);
    return ir::binary(ir::BinaryOp::mul, ir::var_ref(ir::make_var("unknown", expr->type)),
                      ir::int_imm(known_factor(expr), expr->type), expr->span);
  }

 private:
  const ir::Var& lane_;
};

}  // namespace

std::optional<std::vector<Multiple>> row_steps(const Surroundings& around, const Buffer& buffer) {
  if (buffer->scope != Scope::shared) return row_distances(*buffer);
  std::vector<Multiple> steps;
  const layout::SharedLayout& memory = around.tiles.at(buffer.get());
  const auto strides = layout::row_major_strides(memory.shape());
  for (size_t axis = 0; axis + 1 < strides.size(); ++axis)
    steps.push_back({memory.span() == layout::SwizzleSpan::none
                         ? memory.offset(std::min(strides[axis], layout::volume(memory.shape()) - 1))
                         : 128 / memory.element_bits(),
                     true});
  return steps;
}

Expr unknowns_apart(const Expr& index, const ir::Var& lane) { return Unknowns(lane).rewrite(index); }

namespace {

// The index as a sum for which multiples matter: of what names stand for, or else of the names, as of blocks that a
// scheduler chooses.
std::optional<ir::Affine> lane_form(const c::IntegerFacts& facts, const Expr& index, const ir::Var& lane) {
  auto form = facts.affine(unknowns_apart(facts.expand(index), lane));
  return form ? form : facts.affine(unknowns_apart(index, lane));
}

}  // namespace

VectorChoice vector_access(const Surroundings& around, const Buffer& buffer, const std::vector<Expr>& given,
                           const ir::Var& lane, int64_t lanes) {
  const auto none = [](std::string why) { return VectorChoice{std::nullopt, std::move(why)}; };
  const bool is_shared_view = buffer->base && buffer->scope != Scope::global;
  if (buffer->type.is_nibble() || is_shared_view || buffer->address || given.empty())
    return none(fmt::format("`{}` is packed, a view or named by its address", buffer->name));
  const RowLengths no_lengths;
  const LaneCondition where{around.facts, no_lengths, lane, lanes};
  std::vector<Expr> indices;
  for (const Expr& index : given) indices.push_back(LaneApart(where).rewrite(index));
  for (size_t axis = 0; axis + 1 < indices.size(); ++axis)
    if (ir::mentions(indices[axis], lane))
      return none(fmt::format("neighbours of the loop lie in different rows of `{}`", buffer->name));
  const auto last = lane_form(around.facts, indices.back(), lane);
  if (!last || last->coefficient(lane) != 1)
    return none(fmt::format("neighbours of the loop are none in `{}`", buffer->name));
  const int64_t most = buffer->scope == Scope::global ? alignment_of(*buffer) : kAccessBytes;
  const int64_t wanted = std::max<int64_t>(1, most / buffer->type.bytes());
  std::string obstacle;
  int64_t elements = wanted;
  const auto narrow = [&](int64_t multiple, const auto& why) {
    const int64_t left = std::gcd(elements, multiple);
    if (left < elements) obstacle = why();
    elements = left;
  };
  narrow(lanes, [&] { return fmt::format("each thread has {} neighbours of the loop", lanes); });
  narrow(divisor(*last, lane, wanted),
         [&] { return fmt::format("it may start at no multiple of {} elements of `{}`", wanted, buffer->name); });
  if (indices.size() > 1) {
    const auto steps = row_steps(around, buffer);
    if (!steps) return none(fmt::format("elements of rows of `{}` may be apart", buffer->name));
    for (const Multiple& step : *steps)
      narrow(step.of, [&] {
        return step.is_exact ? fmt::format("rows of `{}` are {} elements apart", buffer->name, step.of)
                             : fmt::format("how far rows of `{}` are apart is known at launch alone", buffer->name);
      });
  }
  // All lanes are in bounds or none is.
  if (buffer->scope == Scope::global && !around.facts.in_bounds(indices.back(), buffer->shape.back())) {
    const Multiple length = row_length(*buffer);
    narrow(length.of, [&] {
      return length.is_exact ? fmt::format("rows of `{}` have {} elements", buffer->name, length.of)
                             : fmt::format("the length of rows of `{}` is known at launch alone", buffer->name);
    });
  }
  elements &= -elements;
  if (elements < 2) return none(std::move(obstacle));
  Vector vector{buffer, indices, elements, nullptr};
  for (Expr& index : vector.start)
    index =
        ir::substitute(index, [&](const ir::Var& var) { return var == lane ? ir::int_imm(0, lane->type) : nullptr; });
  return {std::move(vector), std::move(obstacle)};
}

RowLengths row_lengths_of(const ir::Stmt& stmt) {
  RowLengths lengths;
  ir::each_effect(stmt, [&](const Buffer& buffer, bool) {
    if (buffer->scope != Scope::global || buffer->shape.empty()) return;
    if (const auto* symbol = ir::as<ir::VarRef>(buffer->shape.back()))
      lengths.emplace_back(symbol->var, row_length(*buffer).of);
  });
  return lengths;
}

namespace {

bool is_same_comparison(const LaneCondition& where, const ir::Binary& node) {
  using ir::BinaryOp;
  const ir::Var& lane = where.lane;
  // The lanes' side of the comparison on the left. Each side by itself: so it does not matter whether they wrap.
  const bool turned = ir::mentions(node.right, lane);
  const bool is_strict =
      node.op == (turned ? BinaryOp::gt : BinaryOp::lt) || node.op == (turned ? BinaryOp::le : BinaryOp::ge);
  const bool is_weak =
      node.op == (turned ? BinaryOp::ge : BinaryOp::le) || node.op == (turned ? BinaryOp::lt : BinaryOp::gt);
  const auto form = [&](const Expr& part) { return lane_form(where.facts, part, lane); };
  auto side = form(turned ? node.right : node.left);
  auto limit = form(turned ? node.left : node.right);
  if (!(is_strict || is_weak) || !side || !limit || limit->coefficient(lane) != 0) return false;
  if (is_weak) limit->constant += 1;
  for (ir::Affine* sum : {&*side, &*limit})
    for (ir::Affine::Term& term : sum->terms)
      for (const auto& [symbol, multiple] : where.lengths)
        if (term.var == symbol) term.coefficient *= multiple;
  return side->coefficient(lane) == 1 && divisor(*side, lane, where.lanes) == where.lanes &&
         divisor(*limit, lane, where.lanes) == where.lanes;
}

}  // namespace

bool is_same_for_lanes(const LaneCondition& where, const Expr& condition) {
  return !ir::mentions(LaneApart(where).rewrite(condition), where.lane);
}

Lanes lanes_of(const layout::Fragment& fragment) {
  const auto& modes = fragment.registers().modes();
  if (modes.empty() || modes[0].extent < 2) return {};
  const layout::Shape& cover = fragment.cover();
  const std::vector<int64_t> strides = layout::row_major_strides(cover);
  const int64_t count = modes[0].extent;
  size_t axis = cover.size();
  while (axis-- > 0 && (strides[axis] != modes[0].stride || cover[axis] < count)) {}
  if (axis >= cover.size() || fragment.shape()[axis] % count != 0 || cover[axis] % count != 0) return {};
  const bool is_last = strides[axis] == 1;
  // Elsewhere no digit may carry into the axis.
  if (!is_last && !is_separable(fragment)) return {};
  const auto splits = [&](const layout::Mode& mode) {
    const bool lies_along = is_last || (mode.stride >= strides[axis] && mode.stride < strides[axis] * cover[axis]);
    return lies_along && mode.stride % (strides[axis] * count) != 0;
  };
  if (std::any_of(modes.begin() + 1, modes.end(), splits)) return {};
  const auto& threads = fragment.threads().modes();
  if (std::any_of(threads.begin(), threads.end(), splits)) return {};
  return {count, axis};
}

}  // namespace tilepilot::targets::gpu
