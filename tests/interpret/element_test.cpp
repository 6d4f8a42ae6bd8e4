// Arithmetic of elements, by values computed by hand.
#include "compiler/interpret/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/interpret/small_float.h"

namespace tilepilot::interpret {
namespace {

using ir::BinaryOp;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double rounded(double value, ir::DType type) { return Element::real(type, value).number; }

TEST(SmallFloat, EveryCodeIsItsOwnNeighbour) {
  for (const ir::DType type :
       {ir::kFloat16, ir::kBFloat16, ir::kFloat8E4M3, ir::kFloat8E5M2, ir::kFloat8E8M0, ir::kFloat4E2M1}) {
    for (uint32_t code = 0; code < 1u << type.bits; ++code) {
      const double value = decode(code, type);
      if (std::isnan(value) || std::isinf(value)) continue;
      ASSERT_EQ(encode(value, type), code) << ir::to_string(type) << " " << value;
    }
  }
}

TEST(SmallFloat, TiesGoToTheEvenCode) {
  EXPECT_EQ(rounded(2049, ir::kFloat16), 2048);
  EXPECT_EQ(rounded(2051, ir::kFloat16), 2052);
  EXPECT_EQ(rounded(257, ir::kBFloat16), 256);
  EXPECT_EQ(rounded(17, ir::kFloat8E4M3), 16);
  EXPECT_EQ(rounded(19, ir::kFloat8E4M3), 20);
  EXPECT_EQ(rounded(9, ir::kFloat8E5M2), 8);
  EXPECT_EQ(rounded(0x1p-10, ir::kFloat8E4M3), 0);
  EXPECT_EQ(rounded(0x1.8p-9, ir::kFloat8E4M3), 0x1p-8);
}

TEST(SmallFloat, TooLargeBecomesInfinityOrTheLargest) {
  EXPECT_EQ(rounded(65519, ir::kFloat16), 65504);
  EXPECT_EQ(rounded(65520, ir::kFloat16), kInfinity);
  EXPECT_EQ(rounded(-1e39, ir::kBFloat16), -kInfinity);
  EXPECT_EQ(rounded(1000, ir::kFloat8E4M3), 448);
  EXPECT_EQ(rounded(-kInfinity, ir::kFloat8E5M2), -57344);
  EXPECT_TRUE(std::isnan(rounded(kNan, ir::kFloat8E4M3)));
  // Memory may hold what conversions do not make.
  EXPECT_EQ(decode(0x7c, ir::kFloat8E5M2), kInfinity);
}

TEST(SmallFloat, FourBitsHoldEightMagnitudes) {
  const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode(code, ir::kFloat4E2M1), magnitudes[code]);
    EXPECT_EQ(decode(code | 8, ir::kFloat4E2M1), -magnitudes[code]);
  }
  EXPECT_EQ(rounded(2.5, ir::kFloat4E2M1), 2);
  EXPECT_EQ(rounded(5, ir::kFloat4E2M1), 4);
  EXPECT_EQ(rounded(-kInfinity, ir::kFloat4E2M1), -6);
  EXPECT_EQ(rounded(kNan, ir::kFloat4E2M1), 6);
}

TEST(SmallFloat, TensorFloatsDropThirteenBits) {
  EXPECT_EQ(rounded(1 + 0x1p-11, ir::kTensorFloat32), 1 + 0x1p-10);
  EXPECT_EQ(rounded(-1 - 0x1p-11, ir::kTensorFloat32), -1 - 0x1p-10);
  EXPECT_EQ(rounded(1 + 0x1p-12, ir::kTensorFloat32), 1);
  EXPECT_EQ(rounded(0x1.fffp127, ir::kTensorFloat32), kInfinity);
  EXPECT_EQ(rounded(0x1p-137, ir::kTensorFloat32), 0x1p-136);
  EXPECT_TRUE(std::isnan(rounded(kNan, ir::kTensorFloat32)));
  EXPECT_EQ(decode(0x3f801fff, ir::kTensorFloat32), 1);
}

// 1 + 2^-11 + 2^-40 is nearest to 1 + 2^-10, its float32 is halfway.
TEST(SmallFloat, DoublesRoundOnce) {
  EXPECT_EQ(rounded(1 + 0x1p-11 + 0x1p-40, ir::kFloat16), 1 + 0x1p-10);
  EXPECT_EQ(Element::real(ir::kFloat64, 1 + 0x1p-11 + 0x1p-40).cast(ir::kFloat16).number, 1 + 0x1p-10);
}

TEST(SmallFloat, PowersOfTwoHaveNoSignAndNoZero) {
  EXPECT_EQ(rounded(0, ir::kFloat8E8M0), 0x1p-127);
  EXPECT_EQ(rounded(-5, ir::kFloat8E8M0), 4);
  EXPECT_EQ(rounded(3, ir::kFloat8E8M0), 4);
  EXPECT_EQ(rounded(0x1p-127, ir::kFloat8E8M0), 0x1p-127);
  EXPECT_EQ(rounded(kInfinity, ir::kFloat8E8M0), 0x1p127);
  EXPECT_EQ(apply(ir::UnaryOp::neg, Element::real(ir::kFloat8E8M0, 8)).number, 8);
}

int64_t whole(BinaryOp op, int64_t a, int64_t b, ir::DType type) {
  return apply(op, Element::integer(type, a), Element::integer(type, b)).whole;
}

TEST(Element, IntegersWrap) {
  EXPECT_EQ(whole(BinaryOp::add, 127, 1, ir::kInt8), -128);
  EXPECT_EQ(whole(BinaryOp::sub, 0, 1, ir::kUInt8), 255);
  EXPECT_EQ(whole(BinaryOp::mul, 300, 300, ir::kInt16), 24464);
  EXPECT_EQ(whole(BinaryOp::mul, -1, -1, ir::kUInt64), 1);
  EXPECT_EQ(whole(BinaryOp::floor_div, INT64_MIN, -1, ir::kInt64), INT64_MIN);
  EXPECT_EQ(whole(BinaryOp::shl, 1, 31, ir::kInt32), INT32_MIN);
}

TEST(Element, IntegersOfFourBits) {
  EXPECT_EQ(whole(BinaryOp::add, 7, 1, ir::kInt4), -8);
  EXPECT_EQ(whole(BinaryOp::mul, 5, 5, ir::kUInt4), 9);
  EXPECT_EQ(whole(BinaryOp::floor_div, -8, -1, ir::kInt4), -8);
  EXPECT_EQ(apply(ir::MathFn::abs, Element::integer(ir::kInt4, -8)).whole, -8);
  EXPECT_EQ(Element::integer(ir::kInt32, 0x1b).cast(ir::kInt4).whole, -5);
  EXPECT_EQ(Element::integer(ir::kInt4, -3).reinterpret(ir::kUInt4).whole, 13);
  EXPECT_EQ(Element::integer(ir::kUInt4, 15).reinterpret(ir::kFloat4E2M1).number, -6);
  EXPECT_FALSE(Element::real(ir::kFloat32, 8).can_cast(ir::kInt4));
}

TEST(Element, BitsAreCounted) {
  EXPECT_EQ(apply(ir::MathFn::popcount, Element::integer(ir::kInt32, -1)).whole, 32);
  EXPECT_EQ(apply(ir::MathFn::leading_zeros, Element::integer(ir::kUInt32, 1)).whole, 31);
  EXPECT_EQ(apply(ir::MathFn::leading_zeros, Element::integer(ir::kInt64, 0)).whole, 64);
}

TEST(Element, DivisionRoundsDown) {
  EXPECT_EQ(whole(BinaryOp::floor_div, -7, 2, ir::kInt32), -4);
  EXPECT_EQ(whole(BinaryOp::floor_mod, -7, 2, ir::kInt32), 1);
  EXPECT_EQ(whole(BinaryOp::floor_mod, 7, -2, ir::kInt32), -1);
  EXPECT_EQ(whole(BinaryOp::floor_div, 7, 0, ir::kInt32), 0);
  EXPECT_EQ(whole(BinaryOp::floor_mod, 7, 0, ir::kInt32), 7);
  EXPECT_EQ(whole(BinaryOp::floor_div, -1, 2, ir::kUInt64), INT64_MAX);  // the bits of 2^64 - 1
  EXPECT_EQ(whole(BinaryOp::gt, -1, 1, ir::kUInt64), 1);
  EXPECT_EQ(whole(BinaryOp::shr, -8, 1, ir::kInt8), -4);
}

TEST(Element, SmallFloatsRoundAfterEachOperation) {
  const auto half = [](double x) { return Element::real(ir::kFloat16, x); };
  const Element sum = apply(BinaryOp::add, half(2048), half(1));
  EXPECT_EQ(sum.number, 2048);
  EXPECT_EQ(apply(BinaryOp::add, sum, half(1)).number, 2048);
  EXPECT_EQ(apply(BinaryOp::mul, half(300), half(300)).number, kInfinity);
}

TEST(Element, ComparisonsWithNan) {
  const Element nan = Element::real(ir::kFloat32, kNan), one = Element::real(ir::kFloat32, 1);
  EXPECT_EQ(apply(BinaryOp::max, nan, one).number, 1);
  EXPECT_TRUE(std::isnan(apply(BinaryOp::max, one, nan).number));
  for (const BinaryOp op : {BinaryOp::eq, BinaryOp::lt, BinaryOp::le, BinaryOp::gt, BinaryOp::ge})
    EXPECT_FALSE(apply(op, nan, one).truth());
  EXPECT_TRUE(apply(BinaryOp::ne, nan, nan).truth());
}

TEST(Element, Casts) {
  EXPECT_EQ(Element::real(ir::kFloat32, -2.75).cast(ir::kInt32).whole, -2);
  EXPECT_EQ(Element::real(ir::kFloat64, 0x1p63).cast(ir::kUInt64).whole, INT64_MIN);
  EXPECT_EQ(Element::integer(ir::kUInt64, -1).cast(ir::kFloat64).number, 0x1p64);
  EXPECT_EQ(Element::integer(ir::kInt32, 300).cast(ir::kInt8).whole, 44);
  EXPECT_EQ(Element::real(ir::kFloat32, 0.5).cast(ir::kBool).whole, 1);
  EXPECT_FALSE(Element::real(ir::kFloat32, 256).can_cast(ir::kUInt8));
  EXPECT_TRUE(Element::real(ir::kFloat32, -0.5).can_cast(ir::kUInt8));
  EXPECT_TRUE(Element::real(ir::kFloat32, -128.5).can_cast(ir::kInt8));
  EXPECT_FALSE(Element::real(ir::kFloat32, kNan).can_cast(ir::kInt32));
  EXPECT_EQ(Element::real(ir::kFloat32, 1).reinterpret(ir::kInt32).whole, 0x3f800000);
  EXPECT_EQ(Element::integer(ir::kInt8, -1).reinterpret(ir::kUInt8).whole, 255);
  EXPECT_EQ(Element::integer(ir::kInt8, -32).reinterpret(ir::kFloat8E4M3).number, -32);
  EXPECT_EQ(Element::integer(ir::kInt16, -0x4000).reinterpret(ir::kFloat16).number, -2);
}

}  // namespace
}  // namespace tilepilot::interpret
