#include "compiler/stage/python/evaluation/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();
constexpr double kTwoTo63 = 9223372036854775808.0;

uint64_t magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

std::optional<int64_t> shift_left(int64_t value, int64_t count) {
  if (value == 0 && count >= 0) return 0;
  if (count < 0 || count > 63) return std::nullopt;
  auto shifted = static_cast<int64_t>(static_cast<uint64_t>(value) << count);
  return (shifted >> count) == value ? std::optional(shifted) : std::nullopt;
}

// The result where 64 bits suffice and nothing is wrong; else nullopt.
std::optional<Value> small_integer_binary(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOp::add:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional<Value>(result);
    case BinaryOp::sub:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional<Value>(result);
    case BinaryOp::mul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional<Value>(result);
    case BinaryOp::div:
      return b == 0 ? std::nullopt : std::optional<Value>(true_divide(a, b));
    case BinaryOp::floor_div:
      if (auto quotient = b == 0 ? std::nullopt : floor_divide(a, b)) return Value(*quotient);
      return std::nullopt;
    case BinaryOp::mod:
      return b == 0 ? std::nullopt : std::optional<Value>(floor_modulo(a, b));
    case BinaryOp::shl:
      if (auto shifted = shift_left(a, b)) return Value(*shifted);
      return std::nullopt;
    case BinaryOp::shr:
      return b < 0 ? std::nullopt : std::optional<Value>(a >> std::min<int64_t>(b, 63));
    case BinaryOp::bit_and:
      return Value(a & b);
    case BinaryOp::bit_or:
      return Value(a | b);
    case BinaryOp::bit_xor:
      return Value(a ^ b);
    default:
      return std::nullopt;
  }
}

Result<Value> float_power(Interpreter& interpreter, double a, double b, Span span) {
  if (a == 0 && b < 0) return division_by_zero(span, "0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    return value_error(span, "a negative number to a fractional power is complex, which is not supported");
  }
  double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    return interpreter.raise("OverflowError", "numerical result out of range", span);
  }
  return Value(result);
}

Result<std::optional<Value>> float_binary(Interpreter& interpreter, BinaryOp op, double a, double b, Span span) {
  using Maybe = std::optional<Value>;
  switch (op) {
    case BinaryOp::add:
      return Maybe(a + b);
    case BinaryOp::sub:
      return Maybe(a - b);
    case BinaryOp::mul:
      return Maybe(a * b);
    case BinaryOp::div:
      if (b == 0) return division_by_zero(span, "float division by zero");
      return Maybe(a / b);
    case BinaryOp::floor_div:
      if (b == 0) return division_by_zero(span, "float floor division by zero");
      return Maybe(floor_divide(a, b));
    case BinaryOp::mod:
      if (b == 0) return division_by_zero(span, "float modulo");
      return Maybe(floor_modulo(a, b));
    case BinaryOp::pow:
      return Maybe(TRY(float_power(interpreter, a, b, span)));
    default:
      return Maybe();
  }
}

std::optional<Value> bool_binary(BinaryOp op, bool a, bool b) {
  if (op == BinaryOp::bit_and) return Value(a && b);
  if (op == BinaryOp::bit_or) return Value(a || b);
  if (op == BinaryOp::bit_xor) return Value(a != b);
  return std::nullopt;
}

}  // namespace

Result<std::optional<Value>> number_binary(Interpreter& interpreter, BinaryOp op, const Value& left, const Value& right,
                                           Span span) {
  if (left.if_bool() && right.if_bool()) {
    if (auto logical = bool_binary(op, *left.if_bool(), *right.if_bool())) return logical;
  }
  std::optional<int64_t> a = left.as_index(), b = right.as_index();
  if (a && b) {
    if (auto small = small_integer_binary(op, *a, *b)) return small;
    return integer_binary(interpreter, op, BigInteger(*a), BigInteger(*b), span);
  }
  std::optional<double> x = left.as_number(), y = right.as_number();
  if (!x || !y) return std::optional<Value>();
  return float_binary(interpreter, op, *x, *y, span);
}

Result<std::optional<Value>> number_unary(UnaryOp op, const Value& operand) {
  using Maybe = std::optional<Value>;
  if (auto integer = operand.as_index()) {
    if (op == UnaryOp::plus) return Maybe(*integer);
    if (op == UnaryOp::invert) return Maybe(~*integer);
    return Maybe(*integer == kSmallest ? make_integer(-BigInteger(*integer)) : Value(-*integer));
  }
  if (auto* real = operand.if_float()) {
    if (op == UnaryOp::plus) return Maybe(*real);
    if (op == UnaryOp::minus) return Maybe(-*real);
  }
  return Maybe();
}

std::optional<int64_t> floor_divide(int64_t a, int64_t b) {
  if (a == kSmallest && b == -1) return std::nullopt;
  int64_t quotient = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) --quotient;
  return quotient;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_modulo(double a, double b) {
  double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_divide(double a, double b) {
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double true_divide(int64_t a, int64_t b) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (a >= -kExact && a <= kExact && b >= -kExact && b <= kExact) {
    return static_cast<double>(a) / static_cast<double>(b);
  }
  if (a == 0) return b < 0 ? -0.0 : 0.0;
  // Scale the dividend so that the quotient has at least 63 bits; a sticky last bit makes the one rounding right.
  Wide dividend = magnitude(a), divisor = magnitude(b);
  int shift = 0;
  while (!(dividend >> 126)) {
    dividend <<= 1;
    ++shift;
  }
  Wide quotient = dividend / divisor;
  bool sticky = dividend % divisor != 0;
  while (quotient >> 64) {
    sticky = sticky || (quotient & 1);
    quotient >>= 1;
    --shift;
  }
  auto bits = static_cast<uint64_t>(quotient) | (sticky ? 1u : 0u);
  double result = std::ldexp(static_cast<double>(bits), -shift);
  return (a < 0) != (b < 0) ? -result : result;
}

std::optional<int> compare_exactly(int64_t a, double b) {
  if (std::isnan(b)) return std::nullopt;
  if (b >= kTwoTo63) return -1;
  if (b < -kTwoTo63) return 1;
  double whole = std::floor(b);
  auto integer = static_cast<int64_t>(whole);
  if (a != integer) return a < integer ? -1 : 1;
  return b > whole ? -1 : 0;
}

double round_to_digits(double value, int64_t digits) {
  if (!std::isfinite(value) || value == 0 || digits > 323) return value;
  char text[512];
  if (digits >= 0) {
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(digits), value);
    return std::strtod(text, nullptr);
  }
  if (digits < -308) return std::copysign(0.0, value);
  std::snprintf(text, sizeof text, "%.17e", value);
  int exponent = std::atoi(std::strchr(text, 'e') + 1);
  int64_t precision = exponent + digits;  // digits after the first one
  if (precision < -1) return std::copysign(0.0, value);
  if (precision == -1) {
    double unit = std::strtod(fmt::format("1e{}", -digits).c_str(), nullptr);
    return std::fabs(value) > unit / 2 ? std::copysign(unit, value) : std::copysign(0.0, value);
  }
  std::snprintf(text, sizeof text, "%.*e", static_cast<int>(precision), value);
  return std::strtod(text, nullptr);
}

Value round_to_digits(int64_t value, int64_t digits) {
  if (digits >= 0) return Value(value);
  constexpr int64_t kMostPlaces = 20;  // of 64 bits
  if (digits < -kMostPlaces) return Value(0);
  return make_integer(round_to_power_of_ten(BigInteger(value), static_cast<size_t>(-digits)));
}

Result<Value> integer_from(Interpreter& interpreter, double value, Span span) {
  if (std::isnan(value)) return value_error(span, "cannot convert float NaN to integer");
  if (std::isinf(value)) return interpreter.raise("OverflowError", "cannot convert float infinity to integer", span);
  if (value >= kTwoTo63 || value < -kTwoTo63) return make_integer(BigInteger::truncate(value));
  return Value(static_cast<int64_t>(value));
}

Error integer_overflow(Span span, std::string_view operation) {
  return make_error(DiagnosticKind::integer_overflow, span,
                    fmt::format("the result of `{}` does not fit a 64-bit integer", operation));
}

Error division_by_zero(Span span, std::string message) {
  return make_error(DiagnosticKind::division_by_zero, span, std::move(message));
}

Error too_large(Interpreter& interpreter, Span span) {
  return make_error(DiagnosticKind::step_limit, span,
                    fmt::format("the result would have more than {} items", interpreter.limits().container_items));
}

}  // namespace tilepilot::stage
