#include "compiler/interpret/small_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace tilepilot::interpret {
namespace {

struct Format {
  ir::DType type;
  int exponent_bits, digits;  // digits: of the significand, after the point
  uint32_t largest;           // codes without sign: of the largest number,
  uint32_t infinity;          // 0: it has none, and what is too large becomes the largest number
  uint32_t nan;               // of the largest number: it has none
  bool tie_goes_up = false;   // away from zero, not to the even code
};
constexpr Format kFormats[] = {
    {ir::kFloat16, 5, 10, 0x7bff, 0x7c00, 0x7e00}, {ir::kBFloat16, 8, 7, 0x7f7f, 0x7f80, 0x7fc0},
    {ir::kFloat8E4M3, 4, 3, 0x7e, 0, 0x7f},        {ir::kFloat8E5M2, 5, 2, 0x7b, 0x7c, 0x7f},
    {ir::kFloat8E8M0, 8, 0, 0xfe, 0, 0xff, true},  {ir::kFloat4E2M1, 2, 1, 7, 0, 7},
};

const Format* format_of(ir::DType type) {
  const auto* found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.type == type; });
  return found == std::end(kFormats) ? nullptr : found;
}

bool is_exponent_only(const Format& f) { return f.digits == 0; }
// float8_e5m2 can hold infinities, but conversions do not make them.
bool saturates(const Format& f) { return f.type.bits <= 8; }

double finite(uint32_t code, const Format& f) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1, exponent = int(code >> f.digits);
  if (is_exponent_only(f)) return std::ldexp(1.0, exponent - bias);
  const double fraction = code & ((1u << f.digits) - 1);
  if (exponent == 0) return std::ldexp(fraction, 1 - bias - f.digits);
  return std::ldexp(fraction + (1 << f.digits), exponent - bias - f.digits);
}

// By code, without signs. Where there are infinities, the number that the next exponent would begin with stands for
// infinity: what is nearer to it than to the largest number overflows.
std::vector<double> magnitudes(const Format& f) {
  std::vector<double> result;
  const uint32_t last = saturates(f) ? f.largest : f.infinity;
  for (uint32_t code = 0; code <= last; ++code) result.push_back(finite(code, f));
  return result;
}

const std::vector<double>& magnitudes_of(const Format& f) {
  static const auto tables = [] {
    std::vector<std::vector<double>> all;
    for (const Format& row : kFormats) all.push_back(magnitudes(row));
    return all;
  }();
  return tables[size_t(&f - kFormats)];
}

// The same as nearest(), for the formats with many codes, by arithmetic: a table of them does not fit a cache.
uint32_t nearest_of_16_bits(double magnitude, const Format& f) {
  if (std::isinf(magnitude)) return f.infinity;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int exponent = magnitude == 0 ? 1 - bias : std::max(std::ilogb(magnitude), 1 - bias);
  if (exponent > bias) return f.infinity;
  // In units of the last place: ties go to the even one, which is the even code.
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, f.digits - exponent)));
  return std::min((uint32_t(exponent + bias - 1) << f.digits) + units, f.infinity);
}

uint32_t nearest(double magnitude, const Format& f) {
  if (f.type.bits == 16) return nearest_of_16_bits(magnitude, f);
  const std::vector<double>& numbers = magnitudes_of(f);
  const auto above = std::lower_bound(numbers.begin(), numbers.end(), magnitude);
  if (above == numbers.end()) return uint32_t(numbers.size() - 1);
  const auto code = uint32_t(above - numbers.begin());
  if (code == 0 || *above == magnitude) return code;
  const double up = *above - magnitude, down = magnitude - numbers[code - 1];
  if (up != down) return up < down ? code : code - 1;
  return f.tie_goes_up || code % 2 == 0 ? code : code - 1;
}

// Too many numbers for a table: float32's, without the significand's last 13 bits.
constexpr uint32_t kDroppedBits = 0x1fff;

double decode_tensor_float(uint32_t code) { return std::bit_cast<float>(code & ~kDroppedBits); }

uint32_t encode_tensor_float(double value) {
  if (!std::isfinite(value)) return std::bit_cast<uint32_t>(static_cast<float>(value));
  int exponent = 0;
  std::frexp(value, &exponent);
  constexpr int kDigits = 11, kLeastExponent = -136;  // the last place of the least number is 2^-136
  const int place = std::max(exponent - kDigits, kLeastExponent);
  const double rounded = std::copysign(std::floor(std::ldexp(std::fabs(value), -place) + 0.5), value);
  return std::bit_cast<uint32_t>(static_cast<float>(std::ldexp(rounded, place)));
}

}  // namespace

double decode(uint32_t code, ir::DType type) {
  if (type == ir::kTensorFloat32) return decode_tensor_float(code);
  const Format& f = *format_of(type);
  const uint32_t sign = is_exponent_only(f) ? 0 : 1u << (type.bits - 1), magnitude = code & ~sign;
  double value = std::numeric_limits<double>::quiet_NaN();
  if (magnitude <= f.largest) value = magnitudes_of(f)[magnitude];
  if (f.infinity != 0 && magnitude == f.infinity) value = std::numeric_limits<double>::infinity();
  return code & sign ? -value : value;
}

uint32_t encode(double value, ir::DType type) {
  if (type == ir::kTensorFloat32) return encode_tensor_float(value);
  const Format& f = *format_of(type);
  if (std::isnan(value)) return f.nan;
  const uint32_t sign = std::signbit(value) && !is_exponent_only(f) ? 1u << (type.bits - 1) : 0;
  return sign | nearest(std::fabs(value), f);
}

}  // namespace tilepilot::interpret
