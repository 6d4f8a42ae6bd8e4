// The prelude's conversions between element types against their definition.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "compiler/interpret/small_float.h"
#include "tests/rounds.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wpedantic"
namespace tilepilot::testing {
namespace {
namespace element_types {
#include "compiler/targets/cpu/prelude/types.h.in"
}  // namespace element_types
#pragma GCC diagnostic pop

// Two neighbours of a small float, what lies between them, and random doubles.
std::vector<double> samples(ir::DType type) {
  std::mt19937_64 random(7);
  std::vector<double> result;
  const uint64_t codes = type.bits < 32 ? uint64_t{1} << type.bits : 4096;
  const int step = codes > 256 ? 20 / rounds(20) : 1;
  for (uint64_t code = 0; code < codes; code += uint64_t(step)) {
    const auto bits = static_cast<uint32_t>(type.bits < 32 ? code : random());
    const double x = interpret::decode(bits, type), next = interpret::decode(bits + 1, type);
    const double middle = (x + next) / 2;
    for (const double y : {x, middle, std::nextafter(middle, -INFINITY), std::nextafter(middle, INFINITY)})
      if (!std::isnan(y)) result.push_back(y);
  }
  for (int k = 0; k < 4096; ++k) {
    const double y = std::bit_cast<double>(random());
    if (!std::isnan(y)) result.push_back(y);
  }
  return result;
}

template <class T>
uint32_t bits_of(T x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

template <class T>
void expect_conversions(ir::DType type) {
  for (const double x : samples(type)) {
    const double from_double = interpret::decode(bits_of(element_types::convert<T>(x)), type);
    ASSERT_EQ(from_double, interpret::decode(interpret::encode(x, type), type)) << ir::to_string(type) << " of " << x;
    const float single = static_cast<float>(x);
    const double from_float = interpret::decode(bits_of(element_types::convert<T>(single)), type);
    ASSERT_EQ(from_float, interpret::decode(interpret::encode(single, type), type))
        << ir::to_string(type) << " of " << x;
    ASSERT_EQ(element_types::to_float(element_types::convert<T>(single)), from_float);
  }
}

TEST(ConversionTest, RoundOnceAsDefined) {
  expect_conversions<element_types::float16>(ir::kFloat16);
  expect_conversions<element_types::bfloat16>(ir::kBFloat16);
  expect_conversions<element_types::float8_e4m3>(ir::kFloat8E4M3);
  expect_conversions<element_types::float8_e5m2>(ir::kFloat8E5M2);
  expect_conversions<element_types::float8_e8m0>(ir::kFloat8E8M0);
  expect_conversions<element_types::float4_e2m1>(ir::kFloat4E2M1);
  expect_conversions<element_types::tfloat32>(ir::kTensorFloat32);
}

TEST(ConversionTest, IntegersOfFourBitsWrap) {
  for (int x = -300; x < 300; ++x) {
    EXPECT_EQ(element_types::convert<element_types::int4>(x).value, ((x + 8) & 15) - 8);
    EXPECT_EQ(element_types::convert<element_types::uint4>(int64_t{x}).value, x & 15);
  }
}

TEST(ConversionTest, NothingBecomesTheLargestFloatOfFourBits) {
  EXPECT_EQ(element_types::convert<element_types::float4_e2m1>(-NAN).bits, 7);
  EXPECT_EQ(interpret::encode(-NAN, ir::kFloat4E2M1), 7u);
}

}  // namespace
}  // namespace tilepilot::testing
