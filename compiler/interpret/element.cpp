#include "compiler/interpret/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compiler/interpret/small_float.h"
#include "compiler/ir/arithmetic.h"

namespace tilepilot::interpret {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::MathFn;
using ir::Wide;

bool is_unsigned(DType type) { return type.code == ir::TypeCode::unsigned_int; }
bool is_double(DType type) { return type == ir::kFloat64; }
Element boolean(bool value) { return {ir::kBool, 0, value ? 1 : 0}; }

// The mathematical value of an integer.
Wide value_of(const Element& e) { return is_unsigned(e.type) ? Wide{static_cast<uint64_t>(e.whole)} : Wide{e.whole}; }

// The exponent of `ldexp`: beyond these every number is 0 or infinite.
int whole_number(double x) {
  constexpr double kMost = 5000;
  return std::isnan(x) ? 0 : static_cast<int>(std::clamp(x, -kMost, kMost));
}

template <class T>
struct FloatOperation {
  BinaryOp op;
  T (*compute)(T, T);
};
template <class T>
constexpr FloatOperation<T> kFloatOperations[] = {
    {BinaryOp::add, [](T a, T b) { return a + b; }},
    {BinaryOp::sub, [](T a, T b) { return a - b; }},
    {BinaryOp::mul, [](T a, T b) { return a * b; }},
    {BinaryOp::div, [](T a, T b) { return a / b; }},
    {BinaryOp::min, [](T a, T b) { return a < b ? a : b; }},
    {BinaryOp::max, [](T a, T b) { return a > b ? a : b; }},
    {BinaryOp::pow, [](T a, T b) { return T(std::pow(a, b)); }},
    {BinaryOp::atan2, [](T a, T b) { return T(std::atan2(a, b)); }},
    {BinaryOp::hypot, [](T a, T b) { return T(std::hypot(a, b)); }},
    {BinaryOp::ldexp, [](T a, T b) { return T(std::ldexp(a, whole_number(b))); }},
    {BinaryOp::nextafter, [](T a, T b) { return T(std::nextafter(a, b)); }},
    {BinaryOp::fmod, [](T a, T b) { return T(std::fmod(a, b)); }},
};

uint64_t low(Wide a) { return static_cast<uint64_t>(a); }

// What leaves 64 bits wraps there first, which changes nothing about the wrapping to the type.
struct WholeOperation {
  BinaryOp op;
  Wide (*compute)(Wide a, Wide b, int bits);
};
constexpr WholeOperation kWholeOperations[] = {
    {BinaryOp::add, [](Wide a, Wide b, int) { return a + b; }},
    {BinaryOp::sub, [](Wide a, Wide b, int) { return a - b; }},
    {BinaryOp::mul, [](Wide a, Wide b, int) { return Wide{low(a) * low(b)}; }},
    {BinaryOp::floor_div, [](Wide a, Wide b, int) { return b == 0 ? Wide{0} : ir::floor_div(a, b); }},
    {BinaryOp::floor_mod, [](Wide a, Wide b, int) { return b == 0 ? a : ir::floor_mod(a, b); }},
    {BinaryOp::min, [](Wide a, Wide b, int) { return a < b ? a : b; }},
    {BinaryOp::max, [](Wide a, Wide b, int) { return a > b ? a : b; }},
    {BinaryOp::shl, [](Wide a, Wide b, int bits) { return Wide{low(a) << (low(b) & uint64_t(bits - 1))}; }},
    {BinaryOp::shr, [](Wide a, Wide b, int bits) { return a >> int(low(b) & uint64_t(bits - 1)); }},
    {BinaryOp::bit_and, [](Wide a, Wide b, int) { return a & b; }},
    {BinaryOp::bit_or, [](Wide a, Wide b, int) { return a | b; }},
    {BinaryOp::bit_xor, [](Wide a, Wide b, int) { return a ^ b; }},
};

struct Comparison {
  BinaryOp op;
  bool less, equal, greater, unordered;  // the answer where the left operand is that
};
constexpr Comparison kComparisons[] = {
    {BinaryOp::eq, false, true, false, false}, {BinaryOp::ne, true, false, true, true},
    {BinaryOp::lt, true, false, false, false}, {BinaryOp::le, true, true, false, false},
    {BinaryOp::gt, false, false, true, false}, {BinaryOp::ge, false, true, true, false},
};

// The row of an operator, or null.
template <class Row, size_t n>
const Row* find(const Row (&rows)[n], BinaryOp op) {
  for (const Row& row : rows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

template <class T>
bool compared(const Comparison& row, T a, T b) {
  return a < b ? row.less : a == b ? row.equal : a > b ? row.greater : row.unordered;
}

template <class T>
Element computed(BinaryOp op, const Element& a, const Element& b) {
  const auto* row = find(kFloatOperations<T>, op);
  return row ? Element::real(a.type, double(row->compute(T(a.number), T(b.number)))) : a;
}

Element computed_whole(BinaryOp op, const Element& a, const Element& b) {
  const auto* row = find(kWholeOperations, op);
  if (!row) return a;
  const Wide result = row->compute(value_of(a), value_of(b), a.type.bits);
  if (a.type.is_bool()) return boolean(result != 0);
  return {a.type, 0, ir::wrap(result, a.type)};
}

struct ExactFunction {
  MathFn function;
  double (*compute)(double);
};
constexpr ExactFunction kExactFunctions[] = {
    {MathFn::abs, [](double x) { return std::fabs(x); }},
    {MathFn::floor, [](double x) { return std::floor(x); }},
    {MathFn::ceil, [](double x) { return std::ceil(x); }},
    {MathFn::round, [](double x) { return std::nearbyint(x); }},
    {MathFn::trunc, [](double x) { return std::trunc(x); }},
};

}  // namespace

Element Element::real(DType type, double value) {
  if (is_double(type)) return {type, value, 0};
  return {type, type.is_small_float() ? decode(encode(value, type), type) : double{static_cast<float>(value)}, 0};
}

Element Element::integer(DType type, int64_t value) {
  return type.is_bool() ? boolean(value != 0) : Element{type, 0, ir::wrap(value, type)};
}

Element Element::from_bits(uint64_t bits, DType type) {
  if (type.is_small_float())
    return {type, decode(static_cast<uint32_t>(bits & ((uint64_t{1} << type.bits) - 1)), type), 0};
  if (is_double(type)) return {type, std::bit_cast<double>(bits), 0};
  if (type.is_float()) return {type, std::bit_cast<float>(static_cast<uint32_t>(bits)), 0};
  return integer(type, static_cast<int64_t>(bits));
}

uint64_t Element::to_bits() const {
  if (type.is_small_float()) return encode(number, type);
  if (is_double(type)) return std::bit_cast<uint64_t>(number);
  if (type.is_float()) return std::bit_cast<uint32_t>(static_cast<float>(number));
  return static_cast<uint64_t>(whole);
}

Element Element::load(const std::byte* memory, DType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, memory, static_cast<size_t>(type.bytes()));
  return from_bits(bits, type);
}

void Element::store(std::byte* memory) const {
  const uint64_t bits = to_bits();
  std::memcpy(memory, &bits, static_cast<size_t>(type.bytes()));
}

bool Element::can_cast(DType to) const {
  if (!type.is_float() || !to.is_int()) return true;
  const double past = std::ldexp(1, is_unsigned(to) ? to.bits : to.bits - 1);
  const double whole_part = std::trunc(number);
  return whole_part >= (is_unsigned(to) ? 0 : -past) && whole_part < past;
}

Element Element::cast(DType to) const {
  if (!can_cast(to)) return zero(to);
  if (type.is_float()) {
    if (to.is_float()) return real(to, number);
    if (to.is_bool()) return boolean(number != 0);
    return {to, 0, ir::wrap(static_cast<Wide>(number), to)};
  }
  if (!to.is_float()) return to.is_bool() ? boolean(truth()) : Element{to, 0, ir::wrap(value_of(*this), to)};
  // In one rounding, or one for float32 and one for the small type.
  return real(to, is_double(to) ? static_cast<double>(value_of(*this)) : static_cast<float>(value_of(*this)));
}

Element Element::reinterpret(DType to) const { return from_bits(to_bits(), to); }

bool same(const Element& a, const Element& b) {
  if (!a.type.is_float()) return a.whole == b.whole;
  return a.number == b.number || (std::isnan(a.number) && std::isnan(b.number));
}

Element apply(ir::UnaryOp op, const Element& operand) {
  if (op == ir::UnaryOp::logical_not || operand.type.is_bool()) return boolean(!operand.truth());
  if (operand.type.is_float()) return Element::real(operand.type, -operand.number);
  const Wide value = value_of(operand);
  return {operand.type, 0, ir::wrap(op == ir::UnaryOp::neg ? -value : ~value, operand.type)};
}

Element apply(BinaryOp op, const Element& left, const Element& right) {
  if (op == BinaryOp::logical_and) return boolean(left.truth() && right.truth());
  if (op == BinaryOp::logical_or) return boolean(left.truth() || right.truth());
  const bool is_float = left.type.is_float();
  if (const Comparison* row = find(kComparisons, op))
    return boolean(is_float ? compared(*row, left.number, right.number)
                            : compared(*row, value_of(left), value_of(right)));
  if (!is_float) return computed_whole(op, left, right);
  return is_double(left.type) ? computed<double>(op, left, right) : computed<float>(op, left, right);
}

Element apply(MathFn function, const Element& x, const Functions& functions) {
  if (function == MathFn::isnan) return boolean(std::isnan(x.number));
  if (function == MathFn::isinf) return boolean(std::isinf(x.number));
  if (function == MathFn::isfinite) return boolean(std::isfinite(x.number));
  if (function == MathFn::leading_zeros || function == MathFn::popcount) {
    const uint64_t all = static_cast<uint64_t>(x.whole), bits = x.type.bits == 32 ? all & 0xffffffff : all;
    const int count = function == MathFn::popcount ? std::popcount(bits) : std::countl_zero(bits) - 64 + x.type.bits;
    return Element::integer(x.type, count);
  }
  if (!x.type.is_float()) {
    const Wide value = value_of(x);
    return {x.type, 0, ir::wrap(value < 0 ? -value : value, x.type)};
  }
  for (const ExactFunction& row : kExactFunctions) {
    if (row.function == function) return Element::real(x.type, row.compute(x.number));
  }
  const Function& row = functions[static_cast<size_t>(function)];
  if (is_double(x.type)) return Element::real(x.type, row.wide(x.number));
  return Element::real(x.type, row.single(static_cast<float>(x.number)));
}

}  // namespace tilepilot::interpret
