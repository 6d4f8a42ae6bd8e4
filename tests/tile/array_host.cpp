#include "tests/tile/array_host.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

namespace tilepilot::testing {
namespace {

// Between a 16-bit float and a double through the bits: sign, exponent, fraction. Rounds to nearest, ties to even.
struct HalfFormat {
  int fraction_bits, bias;
};
HalfFormat format_of(ir::DType type) { return type == ir::kBFloat16 ? HalfFormat{7, 127} : HalfFormat{10, 15}; }

double widen(uint16_t bits, HalfFormat format) {
  int exponent_bits = 15 - format.fraction_bits;
  int exponent = (bits >> format.fraction_bits) & ((1 << exponent_bits) - 1);
  int fraction = bits & ((1 << format.fraction_bits) - 1);
  double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  int shift = (exponent == 0 ? 1 : exponent) - format.bias - format.fraction_bits;
  int significand = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  return sign * std::ldexp(significand, shift);
}

uint16_t narrow(double value, HalfFormat format) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (!std::isfinite(value)) {
    int infinity = 0x7fff >> format.fraction_bits << format.fraction_bits;
    return static_cast<uint16_t>(sign | infinity | (std::isnan(value) ? 1 << (format.fraction_bits - 1) : 0));
  }
  double magnitude = std::fabs(value);
  int exponent = magnitude == 0 ? 1 - format.bias : std::max(std::ilogb(magnitude), 1 - format.bias);
  auto units = static_cast<int64_t>(std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)));
  int64_t base = static_cast<int64_t>(exponent + format.bias - 1) << format.fraction_bits;
  return static_cast<uint16_t>(sign | (base + units));
}

template <class T>
T read(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void write(uint8_t* to, double number) {
  T value = static_cast<T>(number);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

ArrayObject::ArrayObject(ir::DType dtype, std::vector<int64_t> shape) {
  view.type = dtype;
  view.strides.assign(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) view.strides[axis - 1] = view.strides[axis] * shape[axis];
  view.shape = std::move(shape);
  bytes_.resize(static_cast<size_t>(size() * dtype.bytes()));
  view.data = bytes_.data();
}

int64_t ArrayObject::size() const {
  return std::accumulate(view.shape.begin(), view.shape.end(), int64_t{1}, std::multiplies<>());
}

Result<stage::Value> ArrayObject::get_attribute(stage::Interpreter& interpreter, stage::Name name, Span span) {
  if (name.text() != "shape") return Object::get_attribute(interpreter, name, span);
  return stage::make_tuple(std::vector<stage::Value>(view.shape.begin(), view.shape.end()));
}

double ArrayObject::at(int64_t index) const {
  const uint8_t* from = bytes_.data() + index * view.type.bytes();
  if (view.type == ir::kFloat32) return double{read<float>(from)};
  if (view.type == ir::kFloat64) return read<double>(from);
  assert(!view.type.is_float() || view.type.bits == 16);
  if (view.type.is_float()) return widen(read<uint16_t>(from), format_of(view.type));
  if (view.type == ir::kInt32) return double{static_cast<double>(read<int32_t>(from))};
  if (view.type == ir::kUInt32) return double{static_cast<double>(read<uint32_t>(from))};
  if (view.type == ir::kInt64) return static_cast<double>(read<int64_t>(from));
  if (view.type == ir::kUInt16) return read<uint16_t>(from);
  if (view.type == ir::kInt8) return read<int8_t>(from);
  return read<uint8_t>(from);
}

void ArrayObject::set(int64_t index, double value) {
  uint8_t* to = bytes_.data() + index * view.type.bytes();
  assert(!view.type.is_float() || view.type.bits >= 16);
  if (view.type == ir::kFloat32)
    write<float>(to, value);
  else if (view.type == ir::kFloat64)
    write<double>(to, value);
  else if (view.type.is_float()) {
    uint16_t bits = narrow(value, format_of(view.type));
    std::memcpy(to, &bits, sizeof bits);
  } else if (view.type == ir::kInt32)
    write<int32_t>(to, value);
  else if (view.type == ir::kUInt32)
    write<uint32_t>(to, value);
  else if (view.type == ir::kInt64)
    write<int64_t>(to, value);
  else if (view.type == ir::kUInt16)
    write<uint16_t>(to, value);
  else if (view.type == ir::kInt8)
    write<int8_t>(to, value);
  else
    write<uint8_t>(to, value);
}

Array make_array(ir::DType dtype, std::vector<int64_t> shape, const std::function<double(int64_t)>& value) {
  auto array = std::make_shared<ArrayObject>(dtype, std::move(shape));
  for (int64_t i = 0; i < array->size(); ++i) array->set(i, value(i));
  return array;
}

Array random_array(ir::DType dtype, std::vector<int64_t> shape, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> distribution(-1, 1);
  return make_array(dtype, std::move(shape), [&](int64_t) { return distribution(generator); });
}

std::optional<runtime::TensorView> ArrayHost::view(const stage::Value& value) {
  auto* array = value.get_if<ArrayObject>();
  return array ? std::optional(array->view) : std::nullopt;
}

Result<stage::Value> ArrayHost::allocate(ir::DType type, const std::vector<int64_t>& shape, Span span) {
  if (type == ir::kTensorFloat32) return allocate(ir::kFloat32, shape, span);
  if (type.is_nibble()) {
    std::vector<int64_t> bytes = shape;
    bytes.back() /= 2;
    return allocate(ir::kUInt8, bytes, span);
  }
  // Not a number: what a kernel leaves out shows.
  return stage::Value(make_array(type, shape, [&](int64_t) { return type.is_float() ? std::nan("") : 77; }));
}

std::optional<ir::DType> ArrayHost::dtype(const stage::Value&) { return std::nullopt; }

}  // namespace tilepilot::testing
