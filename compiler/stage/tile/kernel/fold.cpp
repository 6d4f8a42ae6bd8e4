#include "compiler/stage/tile/kernel/fold.h"

#include <cmath>
#include <limits>
#include <vector>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"

namespace tilepilot::stage {
namespace {

using ir::Expr;

// Whether a value is representable in an integer type.
bool fits(int64_t value, ir::DType type) {
  return ir::wrap(value, type) == value && (value >= 0 || type.code != ir::TypeCode::unsigned_int);
}

// A constant that 64 signed bits hold: not the upper half of uint64, whose immediates hold the bits.
std::optional<int64_t> computable(const Expr& expr) {
  auto constant = ir::constant_int(expr);
  return constant && fits(*constant, expr->type) ? constant : std::nullopt;
}

std::optional<int64_t> arithmetic(ir::BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case ir::BinaryOp::add:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case ir::BinaryOp::sub:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case ir::BinaryOp::mul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case ir::BinaryOp::floor_div:
      return b == 0 || b == -1 ? std::nullopt : std::optional(static_cast<int64_t>(ir::floor_div(a, b)));
    case ir::BinaryOp::floor_mod:
      return b == 0 || b == -1 ? std::nullopt : std::optional(static_cast<int64_t>(ir::floor_mod(a, b)));
    case ir::BinaryOp::min:
      return std::min(a, b);
    case ir::BinaryOp::max:
      return std::max(a, b);
    case ir::BinaryOp::bit_and:
      return a & b;
    case ir::BinaryOp::bit_or:
      return a | b;
    case ir::BinaryOp::bit_xor:
      return a ^ b;
    case ir::BinaryOp::eq:
      return a == b;
    case ir::BinaryOp::ne:
      return a != b;
    case ir::BinaryOp::lt:
      return a < b;
    case ir::BinaryOp::le:
      return a <= b;
    case ir::BinaryOp::gt:
      return a > b;
    case ir::BinaryOp::ge:
      return a >= b;
    case ir::BinaryOp::logical_and:
      return a != 0 && b != 0;
    case ir::BinaryOp::logical_or:
      return a != 0 || b != 0;
    default:
      return std::nullopt;
  }
}

bool gives_bool(ir::BinaryOp op) { return op >= ir::BinaryOp::eq; }

// x op constant, for integers; null if nothing simplifies.
Expr with_constant_right(ir::BinaryOp op, const Expr& left, int64_t right, Span span) {
  switch (op) {
    case ir::BinaryOp::add:
    case ir::BinaryOp::sub:
    case ir::BinaryOp::shl:
    case ir::BinaryOp::shr:
      if (right == 0) return left;
      break;
    case ir::BinaryOp::mul:
      if (right == 1) return left;
      if (right == 0) return ir::int_imm(0, left->type, span);
      break;
    case ir::BinaryOp::floor_div:
      if (right == 1) return left;
      break;
    case ir::BinaryOp::floor_mod:
      if (right == 1) return ir::int_imm(0, left->type, span);
      break;
    case ir::BinaryOp::logical_and:
      return right ? left : ir::bool_imm(false, span);
    case ir::BinaryOp::logical_or:
      return right ? ir::bool_imm(true, span) : left;
    default:
      break;
  }
  return nullptr;
}

Expr with_constant_left(ir::BinaryOp op, int64_t left, const Expr& right, Span span) {
  switch (op) {
    case ir::BinaryOp::add:
      return left == 0 ? right : nullptr;
    case ir::BinaryOp::mul:
    case ir::BinaryOp::logical_and:
    case ir::BinaryOp::logical_or:
      return with_constant_right(op, right, left, span);
    default:
      return nullptr;
  }
}

// (x + a) + b becomes x + (a + b).
Expr join_offsets(ir::BinaryOp op, const Expr& left, int64_t right, Span span) {
  auto* inner = std::get_if<ir::Binary>(&left->node);
  if (!inner || inner->op != ir::BinaryOp::add || (op != ir::BinaryOp::add && op != ir::BinaryOp::sub)) return nullptr;
  auto offset = ir::constant_int(inner->right);
  if (!offset) return nullptr;
  auto sum = arithmetic(op, *offset, right);
  if (!sum || !fits(*sum, left->type)) return nullptr;
  return fold_binary(ir::BinaryOp::add, inner->left, ir::int_imm(*sum, left->type, span), span);
}

// A sum of integer multiples of terms that are not themselves sums, and a constant.
class LinearForm {
 public:
  explicit LinearForm(const Definition& definition) : definition_(definition) {}

  bool add(const Expr& expr, int64_t factor) {
    if (auto constant = ir::constant_int(expr)) return accumulate(constant_, *constant, factor);
    if (auto* binary = std::get_if<ir::Binary>(&expr->node))
      if (auto handled = add_binary(*binary, factor)) return *handled;
    if (auto* reference = std::get_if<ir::VarRef>(&expr->node))
      if (Expr value = definition_ ? definition_(reference->var) : nullptr; value && !reads_memory(value))
        return add(value, factor);
    return add_term(expr, factor);
  }

  std::optional<int64_t> constant() const {
    for (const auto& [term, factor] : terms_)
      if (factor != 0) return std::nullopt;
    return constant_;
  }

 private:
  static bool accumulate(int64_t& sum, int64_t value, int64_t factor) {
    int64_t product = 0;
    return !__builtin_mul_overflow(value, factor, &product) && !__builtin_add_overflow(sum, product, &sum);
  }

  std::optional<bool> add_binary(const ir::Binary& binary, int64_t factor) {
    if (binary.op == ir::BinaryOp::add) return add(binary.left, factor) && add(binary.right, factor);
    if (binary.op == ir::BinaryOp::sub) return add(binary.left, factor) && add(binary.right, -factor);
    if (binary.op != ir::BinaryOp::mul) return std::nullopt;
    auto scale = ir::constant_int(binary.right);
    const Expr& other = scale ? binary.left : binary.right;
    if (!scale) scale = ir::constant_int(binary.left);
    int64_t product = 0;
    if (!scale || __builtin_mul_overflow(*scale, factor, &product)) return std::nullopt;
    return add(other, product);
  }

  bool add_term(const Expr& expr, int64_t factor) {
    for (auto& [term, sum] : terms_)
      if (ir::structurally_equal(term, expr)) return accumulate(sum, 1, factor);
    terms_.emplace_back(expr, factor);
    return true;
  }

  // What a variable stands for may have read memory that was written since.
  static bool reads_memory(const Expr& expr) {
    bool found = false;
    ir::walk(expr, [&](const Expr& part) { found = found || std::holds_alternative<ir::Load>(part->node); });
    return found;
  }

  const Definition& definition_;
  std::vector<std::pair<Expr, int64_t>> terms_;
  int64_t constant_ = 0;
};

bool is_narrow(ir::DType type) { return type.is_int() && type.bits < 32; }

// Whether the low bits of the result follow from the low bits of the operands.
bool wraps(ir::BinaryOp op) {
  return op == ir::BinaryOp::add || op == ir::BinaryOp::sub || op == ir::BinaryOp::mul || op == ir::BinaryOp::shl ||
         op == ir::BinaryOp::bit_and || op == ir::BinaryOp::bit_or || op == ir::BinaryOp::bit_xor;
}

// What `on_promoted` cuts, as C would not have done yet. `explicit_cast` never makes a cast of such a form.
Expr cut_from(const Expr& expr) {
  const auto* cut = std::get_if<ir::Cast>(&expr->node);
  const auto* inner = cut && cut->value->type == ir::kInt32 ? std::get_if<ir::Binary>(&cut->value->node) : nullptr;
  return inner && !wraps(inner->op) ? cut->value : nullptr;
}

// A narrow integer as the int32 that C computes with (C++20, [conv.prom]); null: the number as it is would be the same.
Expr promoted(const Expr& expr) {
  if (!is_narrow(expr->type)) return nullptr;
  if (Expr before = cut_from(expr)) return before;
  const auto operand = [](const Expr& part) {
    Expr wide = promoted(part);
    return wide ? wide : fold_cast(part, ir::kInt32, part->span);
  };
  if (const auto* binary = std::get_if<ir::Binary>(&expr->node); binary && wraps(binary->op))
    return fold_binary(binary->op, operand(binary->left), operand(binary->right), expr->span);
  if (const auto* choice = std::get_if<ir::Select>(&expr->node)) {
    if (!promoted(choice->then) && !promoted(choice->otherwise)) return nullptr;
    return fold_select(choice->condition, operand(choice->then), operand(choice->otherwise), expr->span);
  }
  const auto* unary = std::get_if<ir::Unary>(&expr->node);
  if (!unary || unary->op == ir::UnaryOp::logical_not) return nullptr;
  Expr inner = operand(unary->operand);
  if (unary->op == ir::UnaryOp::neg) return fold_negation(std::move(inner), expr->span);
  return ir::unary(unary->op, std::move(inner), expr->span);
}

// An operation whose result depends on more than the low bits, of operands that C would not have cut yet.
Expr on_promoted(ir::BinaryOp op, const Expr& left, const Expr& right, Span span) {
  if (wraps(op)) return nullptr;
  Expr a = promoted(left), b = promoted(right);
  if (!a && !b) return nullptr;
  if (!a) a = fold_cast(left, ir::kInt32, span);
  if (!b) b = fold_cast(right, ir::kInt32, span);
  Expr result = fold_binary(op, std::move(a), std::move(b), span);
  return gives_bool(op) ? result : fold_cast(std::move(result), left->type, span);
}

}  // namespace

Expr fold_binary(ir::BinaryOp op, Expr left, Expr right, Span span) {
  auto a = computable(left), b = computable(right);
  if (a && b) {
    ir::DType type = gives_bool(op) ? ir::kBool : left->type;
    if (auto value = arithmetic(op, *a, *b); value && fits(*value, type)) return ir::int_imm(*value, type, span);
  }
  if (b) {
    if (Expr simple = with_constant_right(op, left, *b, span)) return simple;
    if (Expr simple = join_offsets(op, left, *b, span)) return simple;
  }
  if (a)
    if (Expr simple = with_constant_left(op, *a, right, span)) return simple;
  if (Expr wide = on_promoted(op, left, right, span)) return wide;
  return ir::binary(op, std::move(left), std::move(right), span);
}

Expr fold_negation(Expr operand, Span span) {
  if (auto* real = std::get_if<ir::FloatImm>(&operand->node)) return ir::float_imm(-real->value, operand->type, span);
  auto value = ir::constant_int(operand);
  if (value && *value != std::numeric_limits<int64_t>::min() && fits(-*value, operand->type))
    return ir::int_imm(-*value, operand->type, span);
  return ir::unary(ir::UnaryOp::neg, std::move(operand), span);
}

Expr fold_cast(Expr value, ir::DType type, Span span) {
  if (value->type == type) return value;
  if (auto integer = computable(value)) {
    if (type.is_float()) return ir::float_imm(static_cast<double>(*integer), type, span);
    if (!type.is_bool() && fits(*integer, type)) return ir::int_imm(*integer, type, span);
  }
  // Only widening keeps the value; a narrowing one is rounded where it runs.
  if (auto* real = std::get_if<ir::FloatImm>(&value->node)) {
    bool exact = std::isinf(real->value) || std::nearbyint(real->value) == real->value;
    if (type.is_float() &&
        (type.bits > value->type.bits || (exact && std::abs(real->value) <= 256) || std::isinf(real->value)))
      return ir::float_imm(real->value, type, span);
  }
  if (type.is_float() || type.bits > value->type.bits)
    if (Expr wide = promoted(value)) return fold_cast(std::move(wide), type, span);
  return ir::cast(std::move(value), type, span);
}

Expr explicit_cast(Expr value, ir::DType type, Span span) {
  if (is_narrow(type) && !computable(value)) {
    Expr wide = value->type == type ? promoted(value) : value;
    if (wide && wide->type == ir::kInt32) {
      Expr cut = ir::cast(wide, type, span);
      return cut_from(cut) ? ir::cast(ir::cast(std::move(wide), ir::kUInt32, span), type, span) : cut;
    }
  }
  return fold_cast(std::move(value), type, span);
}

Expr fold_select(Expr condition, Expr then, Expr otherwise, Span span) {
  if (auto chosen = ir::constant_int(condition)) return *chosen ? then : otherwise;
  return ir::select(std::move(condition), std::move(then), std::move(otherwise), span);
}

std::optional<int64_t> constant_difference(const Expr& left, const Expr& right, const Definition& definition) {
  LinearForm form(definition);
  if (!form.add(left, 1) || !form.add(right, -1)) return std::nullopt;
  return form.constant();
}

std::optional<int64_t> evaluate_integer(const Expr& expr,
                                        const std::function<std::optional<int64_t>(const ir::Var&)>& value_of) {
  if (auto constant = ir::constant_int(expr)) return constant;
  if (auto* reference = std::get_if<ir::VarRef>(&expr->node)) return value_of(reference->var);
  if (auto* cast = std::get_if<ir::Cast>(&expr->node)) return evaluate_integer(cast->value, value_of);
  auto* binary = std::get_if<ir::Binary>(&expr->node);
  if (!binary) return std::nullopt;
  auto left = evaluate_integer(binary->left, value_of), right = evaluate_integer(binary->right, value_of);
  if (!left || !right) return std::nullopt;
  return arithmetic(binary->op, *left, *right);
}

}  // namespace tilepilot::stage
