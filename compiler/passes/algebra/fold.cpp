#include "compiler/passes/algebra/fold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/bounds.h"
#include "compiler/ir/visit.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

const IntImm* int_of(const Expr& e) { return std::get_if<IntImm>(&e->node); }
const FloatImm* float_of(const Expr& e) { return std::get_if<FloatImm>(&e->node); }

// Mathematical value: of a uint64 its unsigned one.
Wide value_of(int64_t value, DType type) { return type == kUInt64 ? Wide{static_cast<uint64_t>(value)} : Wide{value}; }
Wide value_of(const IntImm& imm, DType type) { return value_of(imm.value, type); }

std::optional<bool> compared(BinaryOp op, auto a, auto b) {
  switch (op) {
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    case BinaryOp::ge:
      return a >= b;
    case BinaryOp::logical_and:
      return a != 0 && b != 0;
    case BinaryOp::logical_or:
      return a != 0 || b != 0;
    default:
      return std::nullopt;
  }
}

std::optional<Wide> computed(BinaryOp op, Wide a, Wide b, DType type) {
  const bool shifts = b >= 0 && b < type.bits;
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return Wide{int64_t(a)} * int64_t(b);  // congruent, and it fits
    case BinaryOp::floor_div:
      return b == 0 ? std::nullopt : std::optional(floor_div(a, b));
    case BinaryOp::floor_mod:
      return b == 0 ? std::nullopt : std::optional(floor_mod(a, b));
    case BinaryOp::min:
      return a < b ? a : b;
    case BinaryOp::max:
      return a > b ? a : b;
    case BinaryOp::shl:
      return shifts ? std::optional(a * (Wide{1} << int(b))) : std::nullopt;
    case BinaryOp::shr:
      return shifts ? std::optional(a >> int(b)) : std::nullopt;
    case BinaryOp::bit_and:
      return a & b;
    case BinaryOp::bit_or:
      return a | b;
    case BinaryOp::bit_xor:
      return a ^ b;
    default:
      return std::nullopt;
  }
}

// In float32 for small floats, rounded once: double holds float32 sums, products and quotients well enough that
// rounding twice changes nothing.
std::optional<double> computed(BinaryOp op, double a, double b, DType type) {
  const auto in_type = [&](double value) {
    return round_to(type.is_small_float() ? round_to(value, kFloat32) : value, type);
  };
  switch (op) {
    case BinaryOp::add:
      return in_type(a + b);
    case BinaryOp::sub:
      return in_type(a - b);
    case BinaryOp::mul:
      return in_type(a * b);
    case BinaryOp::div:
      return in_type(a / b);
    case BinaryOp::min:
      return a < b ? a : b;
    case BinaryOp::max:
      return a > b ? a : b;
    default:
      return std::nullopt;
  }
}

Expr fold_binary(const Binary& n, const Expr& e) {
  const DType type = n.left->type;
  if (const auto* a = int_of(n.left), *b = int_of(n.right); a && b && n.right->type == type) {
    const auto result = fold(n.op, a->value, b->value, type);
    return result ? int_imm(*result, e->type, e->span) : nullptr;
  }
  if (const auto* a = float_of(n.left), *b = float_of(n.right); a && b && n.right->type == type) {
    const double x = round_to(a->value, type), y = round_to(b->value, type);
    if (const auto result = compared(n.op, x, y)) return bool_imm(*result, e->span);
    const auto result = computed(n.op, x, y, type);
    return result ? float_imm(*result, type, e->span) : nullptr;
  }
  return nullptr;
}

Expr fold_unary(const Unary& n, const Expr& e) {
  if (const auto* a = int_of(n.operand)) {
    if (n.op == UnaryOp::logical_not) return bool_imm(a->value == 0, e->span);
    return int_imm(wrap(n.op == UnaryOp::neg ? -Wide{a->value} : ~Wide{a->value}, e->type), e->type, e->span);
  }
  const auto* a = float_of(n.operand);
  return a && n.op == UnaryOp::neg ? float_imm(-round_to(a->value, e->type), e->type, e->span) : nullptr;
}

Expr fold_count(const Math& n, const Expr& e, int64_t value) {
  const int width = e->type.bits;
  const uint64_t bits = static_cast<uint64_t>(value) & (width == 32 ? 0xffffffff : ~uint64_t{0});
  const bool ones = n.function == MathFn::popcount;
  return int_imm(ones ? std::popcount(bits) : std::countl_zero(bits) - 64 + width, e->type, e->span);
}

Expr fold_math(const Math& n, const Expr& e) {
  const bool counts = n.function == MathFn::popcount || n.function == MathFn::leading_zeros;
  if (const auto* a = int_of(n.argument); a && counts) return fold_count(n, e, a->value);
  if (const auto* a = int_of(n.argument); a && n.function == MathFn::abs) {
    const Wide x = value_of(*a, e->type);
    return int_imm(wrap(x < 0 ? -x : x, e->type), e->type, e->span);
  }
  const auto* a = float_of(n.argument);
  if (!a) return nullptr;
  const double x = round_to(a->value, n.argument->type);
  switch (n.function) {
    case MathFn::abs:
      return float_imm(std::fabs(x), e->type, e->span);
    case MathFn::floor:
      return float_imm(std::floor(x), e->type, e->span);
    case MathFn::ceil:
      return float_imm(std::ceil(x), e->type, e->span);
    case MathFn::trunc:
      return float_imm(std::trunc(x), e->type, e->span);
    case MathFn::isnan:
      return bool_imm(std::isnan(x), e->span);
    case MathFn::isinf:
      return bool_imm(std::isinf(x), e->span);
    case MathFn::isfinite:
      return bool_imm(std::isfinite(x), e->span);
    default:
      return nullptr;
  }
}

Expr cast_float(double x, DType to, Span span) {
  if (to.is_float()) return float_imm(round_to(x, to), to, span);
  if (to.is_bool()) return bool_imm(x != 0, span);
  const Bounds all = type_bounds(to);
  const double whole = std::trunc(x);
  const bool fits = whole >= double(all.lo) && whole <= double(all.hi) && std::fabs(whole) < 0x1p62;
  return fits && (to != kUInt64 || whole >= 0) ? int_imm(int64_t(whole), to, span) : nullptr;
}

Expr cast_int(Wide x, DType to, Span span) {
  if (!to.is_float()) return int_imm(wrap(x, to), to, span);
  // Beyond this, conversion through float32 and straight may differ.
  const bool exact = x >= -(1 << 24) && x <= (1 << 24);
  return exact ? float_imm(round_to(double(x), to), to, span) : nullptr;
}

Expr fold_cast(const Cast& n, const Expr& e) {
  if (const auto* a = int_of(n.value)) return cast_int(value_of(*a, n.value->type), e->type, e->span);
  const auto* a = float_of(n.value);
  return a ? cast_float(round_to(a->value, n.value->type), e->type, e->span) : nullptr;
}

struct SmallFloat {
  DType type;
  int digits;  // of the significand, the hidden one included
  double smallest, largest;
  bool saturates;
};
constexpr SmallFloat kSmallFloats[] = {
    {kFloat16, 11, 0x1p-24, 65504.0, false}, {kBFloat16, 8, 0x1p-133, 0x1.fep127, false},
    {kFloat8E4M3, 4, 0x1p-9, 448.0, true},   {kFloat8E5M2, 3, 0x1p-16, 57344.0, true},
    {kFloat4E2M1, 2, 0x1p-1, 6.0, true},     {kTensorFloat32, 11, 0x1p-136, 0x1.ffcp127, false},
};

// The power of two next to |value|, the larger one in the middle, between 2^-127 and 2^127.
double round_to_power_of_two(double value) {
  if (std::isinf(value)) return 0x1p127;
  if (value == 0) return 0x1p-127;
  int exponent = 0;
  const double significand = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  return std::ldexp(1.0, std::clamp(significand < 0.75 ? exponent - 1 : exponent, -127, 127));
}

// Rounds to a significand of the format's digits whose last place is at least its smallest number.
double round_significand(double value, const SmallFloat& format) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const double place = std::max(std::ldexp(1.0, exponent - format.digits), format.smallest);
  const bool ties_away = format.type == kTensorFloat32;
  return (ties_away ? std::round(value / place) : std::nearbyint(value / place)) * place;
}

}  // namespace

double round_to(double value, DType type) {
  if (std::isnan(value)) return type == kFloat4E2M1 ? 6.0 : value;
  if (type == kFloat64) return value;
  if (type == kFloat32) return static_cast<double>(static_cast<float>(value));
  if (type == kFloat8E8M0) return round_to_power_of_two(value);
  const SmallFloat& format = *std::find_if(std::begin(kSmallFloats), std::end(kSmallFloats),
                                           [&](const SmallFloat& f) { return f.type == type; });
  if (value == 0 || (std::isinf(value) && !format.saturates)) return value;
  const double result = std::isinf(value) ? value : round_significand(value, format);
  const double beyond = format.saturates ? format.largest : std::numeric_limits<double>::infinity();
  if (std::fabs(result) > format.largest) return std::copysign(beyond, value);
  return result == 0 ? std::copysign(0.0, value) : result;
}

std::optional<int64_t> fold(BinaryOp op, int64_t a, int64_t b, DType type) {
  const Wide x = value_of(a, type), y = value_of(b, type);
  if (const auto result = compared(op, x, y)) return int64_t{*result};
  const auto result = computed(op, x, y, type);
  return result ? std::optional(wrap(*result, type)) : std::nullopt;
}

Expr fold(const Expr& expr) {
  const auto left_alone = [](const auto&) { return Expr(); };
  return std::visit(overloaded{
                        [&](const Unary& n) { return fold_unary(n, expr); },
                        [&](const Binary& n) { return fold_binary(n, expr); },
                        [&](const Math& n) { return fold_math(n, expr); },
                        [&](const Cast& n) { return fold_cast(n, expr); },
                        left_alone,
                    },
                    expr->node);
}

}  // namespace tilepilot::passes
