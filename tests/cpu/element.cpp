#include "element.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "compiler/ir/arithmetic.h"

// The functions of generated kernels, so that differential tests can compare bit by bit; how accurate they are is
// tested against the C library in math_test.cpp.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wpedantic"
namespace prelude {
#include "compiler/targets/cpu/prelude/types.h.in"
// After the types.
#include "compiler/targets/cpu/prelude/math.h.in"
}  // namespace prelude
#pragma GCC diagnostic pop

namespace tilepilot::testing {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::MathFn;

bool is_half(DType type) { return type.is_float() && type.bits == 16; }
bool is_unsigned(DType type) { return type.code == ir::TypeCode::unsigned_int; }

Element boolean(bool value) { return {ir::kBool, 0, value ? 1 : 0}; }

template <class T>
double function_value(MathFn function, T x) {
  switch (function) {
    case MathFn::exp:
      return prelude::exp_of(x);
    case MathFn::exp2:
      return prelude::exp2_of(x);
    case MathFn::exp10:
      return prelude::exp10_of(x);
    case MathFn::log:
      return prelude::log_of(x);
    case MathFn::log2:
      return prelude::log2_of(x);
    case MathFn::log10:
      return prelude::log10_of(x);
    case MathFn::log1p:
      return prelude::log1p_of(x);
    case MathFn::sqrt:
      return prelude::sqrt_of(x);
    case MathFn::rsqrt:
      return prelude::rsqrt_of(x);
    case MathFn::sin:
      return prelude::sin_of(x);
    case MathFn::cos:
      return prelude::cos_of(x);
    case MathFn::tan:
      return prelude::tan_of(x);
    case MathFn::sinh:
      return prelude::sinh_of(x);
    case MathFn::cosh:
      return prelude::cosh_of(x);
    case MathFn::tanh:
      return prelude::tanh_of(x);
    case MathFn::asin:
      return prelude::asin_of(x);
    case MathFn::acos:
      return prelude::acos_of(x);
    case MathFn::atan:
      return prelude::atan_of(x);
    case MathFn::erf:
      return prelude::erf_of(x);
    case MathFn::sigmoid:
      return prelude::sigmoid_of(x);
    case MathFn::abs:
      return std::abs(x);
    case MathFn::floor:
      return std::floor(x);
    case MathFn::ceil:
      return std::ceil(x);
    case MathFn::round:
      return std::nearbyint(x);
    case MathFn::trunc:
      return std::trunc(x);
    case MathFn::isnan:
    case MathFn::isinf:
    case MathFn::isfinite:
      break;
  }
  return 0;
}

template <class T>
double float_result(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::min:
      return a < b ? a : b;
    case BinaryOp::max:
      return a > b ? a : b;
    case BinaryOp::pow:
      return std::pow(a, b);
    default:
      return 0;
  }
}

bool compare(BinaryOp op, bool less, bool equal, bool unordered) {
  switch (op) {
    case BinaryOp::eq:
      return equal;
    case BinaryOp::ne:
      return !equal;
    case BinaryOp::lt:
      return less;
    case BinaryOp::le:
      return less || equal;
    case BinaryOp::gt:
      return !less && !equal && !unordered;
    case BinaryOp::ge:
      return !less && !unordered;
    default:
      return false;
  }
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }

// The mathematical value of an integer element.
ir::Wide wide(const Element& element) {
  if (element.type == ir::kUInt64) return static_cast<uint64_t>(element.whole);
  return element.whole;
}

// Modulo 2^64, which the wrapping to any type is a part of.
Element integer_product(const Element& left, const Element& right) {
  const uint64_t product = static_cast<uint64_t>(left.whole) * static_cast<uint64_t>(right.whole);
  return {left.type, 0, ir::wrap(static_cast<int64_t>(product), left.type)};
}

Element whole_result(BinaryOp op, const Element& left, const Element& right) {
  const ir::Wide a = wide(left), b = wide(right);
  const auto wrapped = [&](ir::Wide value) { return Element{left.type, 0, ir::wrap(value, left.type)}; };
  const int bits = left.type.bits;
  switch (op) {
    case BinaryOp::add:
      return wrapped(a + b);
    case BinaryOp::sub:
      return wrapped(a - b);
    case BinaryOp::mul:
      return integer_product(left, right);
    case BinaryOp::floor_div:
      return wrapped(b == 0 ? 0 : ir::floor_div(a, b));
    case BinaryOp::floor_mod:
      return wrapped(b == 0 ? a : ir::floor_mod(a, b));
    case BinaryOp::min:
      return a < b ? left : right;
    case BinaryOp::max:
      return a > b ? left : right;
    case BinaryOp::shl:
      return wrapped(a << static_cast<int>(b & (bits - 1)));
    case BinaryOp::shr:
      return wrapped(a >> static_cast<int>(b & (bits - 1)));
    case BinaryOp::bit_and:
      return wrapped(a & b);
    case BinaryOp::bit_or:
      return wrapped(a | b);
    case BinaryOp::bit_xor:
      return wrapped(a ^ b);
    default:
      return left;
  }
}

}  // namespace

uint16_t narrow(DType type, float value) {
  if (type == ir::kBFloat16) return prelude::to_bfloat16(value).bits;
  return std::bit_cast<uint16_t>(prelude::to_half(value));
}

float widen(DType type, uint16_t bits) {
  if (type == ir::kBFloat16) return prelude::to_float(prelude::bfloat16{bits});
  return prelude::to_float(std::bit_cast<prelude::half>(bits));
}

Element Element::real(DType type, double value) {
  if (type.bits == 64) return {type, value, 0};
  const float single = static_cast<float>(value);
  if (!is_half(type)) return {type, single, 0};
  return {type, widen(type, narrow(type, single)), 0};
}

Element Element::integer(DType type, int64_t value) {
  if (type.is_bool()) return boolean(value != 0);
  return {type, 0, ir::wrap(value, type)};
}

Element Element::load(const void* memory, DType type, int64_t index) {
  const auto* at = static_cast<const std::byte*>(memory) + index * type.bytes();
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(type.bytes()));
  if (is_half(type)) return {type, widen(type, static_cast<uint16_t>(bits)), 0};
  if (type == ir::kFloat32) return {type, std::bit_cast<float>(static_cast<uint32_t>(bits)), 0};
  if (type == ir::kFloat64) return {type, std::bit_cast<double>(bits), 0};
  return integer(type, static_cast<int64_t>(bits));
}

void Element::store(void* memory, int64_t index) const {
  uint64_t bits = static_cast<uint64_t>(whole);
  if (is_half(type)) bits = narrow(type, static_cast<float>(number));
  if (type == ir::kFloat32) bits = std::bit_cast<uint32_t>(static_cast<float>(number));
  if (type == ir::kFloat64) bits = std::bit_cast<uint64_t>(number);
  std::memcpy(static_cast<std::byte*>(memory) + index * type.bytes(), &bits, static_cast<size_t>(type.bytes()));
}

bool Element::can_cast(DType to) const {
  if (!type.is_float() || !to.is_int()) return true;
  const double low = is_unsigned(to) ? -1 : -std::ldexp(1, to.bits - 1);
  const double high = std::ldexp(1, is_unsigned(to) ? to.bits : to.bits - 1);
  return number > (is_unsigned(to) ? low : low - 0.5) && number < high;
}

Element Element::cast(DType to) const {
  if (!can_cast(to)) return {to};
  if (type.is_float()) {
    if (to.is_float()) return real(to, number);
    if (to.is_bool()) return boolean(number != 0);
    return integer(
        to, to == ir::kUInt64 ? static_cast<int64_t>(static_cast<uint64_t>(number)) : static_cast<int64_t>(number));
  }
  if (!to.is_float()) return integer(to, whole);
  // Integers become floats in one rounding.
  const bool is_large = type == ir::kUInt64;
  if (to.bits == 64)
    return real(to, is_large ? static_cast<double>(static_cast<uint64_t>(whole)) : static_cast<double>(whole));
  return real(to, is_large ? static_cast<float>(static_cast<uint64_t>(whole)) : static_cast<float>(whole));
}

Element Element::reinterpret(DType to) const {
  uint64_t memory = 0;
  store(&memory, 0);
  return load(&memory, to, 0);
}

Element apply(ir::UnaryOp op, const Element& operand) {
  if (op == ir::UnaryOp::logical_not || operand.type.is_bool()) return boolean(!operand.truth());
  if (operand.type.is_float()) return {operand.type, -operand.number, 0};
  const ir::Wide value = wide(operand);
  return {operand.type, 0, ir::wrap(op == ir::UnaryOp::neg ? -value : ~value, operand.type)};
}

Element apply(BinaryOp op, const Element& left, const Element& right) {
  if (op == BinaryOp::logical_and) return boolean(left.truth() && right.truth());
  if (op == BinaryOp::logical_or) return boolean(left.truth() || right.truth());
  if (left.type.is_float()) {
    const double a = left.number, b = right.number;
    if (is_comparison(op)) return boolean(compare(op, a < b, a == b, std::isnan(a) || std::isnan(b)));
    if (left.type.bits == 64) return Element::real(left.type, float_result<double>(op, a, b));
    return Element::real(left.type, float_result<float>(op, static_cast<float>(a), static_cast<float>(b)));
  }
  if (is_comparison(op)) return boolean(compare(op, wide(left) < wide(right), left.whole == right.whole, false));
  if (left.type.is_bool()) {
    const Element result = whole_result(op, {ir::kInt32, 0, left.whole}, {ir::kInt32, 0, right.whole});
    return boolean(result.whole != 0);
  }
  return whole_result(op, left, right);
}

Element apply(MathFn function, const Element& argument) {
  if (function == MathFn::isnan) return boolean(std::isnan(argument.number));
  if (function == MathFn::isinf) return boolean(std::isinf(argument.number));
  if (function == MathFn::isfinite) return boolean(std::isfinite(argument.number));
  if (!argument.type.is_float()) {
    const ir::Wide value = wide(argument);
    return {argument.type, 0, ir::wrap(value < 0 && !is_unsigned(argument.type) ? -value : value, argument.type)};
  }
  if (argument.type.bits == 64) return Element::real(argument.type, function_value<double>(function, argument.number));
  return Element::real(argument.type, function_value<float>(function, static_cast<float>(argument.number)));
}

}  // namespace tilepilot::testing
