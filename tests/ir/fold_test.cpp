#include "compiler/passes/algebra/fold.h"
#include "tests/rounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/bounds.h"
#include "compiler/ir/text/text.h"
#include "evaluate.h"

namespace tilepilot::passes {
namespace {

using namespace ir;

// Every operator on every pair of an 8-bit type.
TEST(FoldTest, IntegersExhaustively) {
  for (const DType type : {kInt8, kUInt8, kInt4, kUInt4}) {
    const Bounds all = type_bounds(type);
    for (int op = 0; op <= int(BinaryOp::ge); ++op) {
      const bool is_real = BinaryOp(op) >= BinaryOp::pow && BinaryOp(op) <= BinaryOp::fmod;
      if (BinaryOp(op) == BinaryOp::div || is_real) continue;
      for (int64_t a = all.lo; a <= all.hi; ++a) {
        for (int64_t b = all.lo; b <= all.hi; b += 60 / rounds(20)) {
          const Expr e = binary(BinaryOp(op), int_imm(a, type), int_imm(b, type));
          const Expr result = fold(e);
          const bool divides = BinaryOp(op) == BinaryOp::floor_div || BinaryOp(op) == BinaryOp::floor_mod;
          const bool shifts = BinaryOp(op) == BinaryOp::shl || BinaryOp(op) == BinaryOp::shr;
          if ((divides && b == 0) || (shifts && (b < 0 || b >= type.bits))) {
            EXPECT_FALSE(result);
            continue;
          }
          ASSERT_TRUE(result) << to_text(e);
          ASSERT_EQ(result->type, e->type);
          ASSERT_EQ(constant_int(result), ir::testing::evaluate(e, {})) << to_text(e);
        }
      }
    }
  }
}

TEST(FoldTest, WideIntegers) {
  const auto text = [](BinaryOp op, int64_t a, int64_t b, DType type) {
    return to_text(fold(binary(op, int_imm(a, type), int_imm(b, type))));
  };
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(text(BinaryOp::add, kMax, 1, kInt64), "-9223372036854775808i64");
  EXPECT_EQ(text(BinaryOp::mul, kMax, kMax, kInt64), "1i64");
  EXPECT_EQ(text(BinaryOp::floor_div, kMin, -1, kInt64), "-9223372036854775808i64");
  // The bits of 2^64 - 1.
  EXPECT_EQ(text(BinaryOp::gt, -1, 1, kUInt64), "true");
  EXPECT_EQ(text(BinaryOp::floor_div, -1, 2, kUInt64), "9223372036854775807u64");
  EXPECT_EQ(text(BinaryOp::mul, -1, -1, kUInt64), "1u64");
}

double half_value(unsigned bits) {
  const int exponent = int(bits >> 10 & 31);
  const double significand = bits & 1023;
  return exponent == 0 ? std::ldexp(significand, -24) : std::ldexp(significand + 1024, exponent - 25);
}

double brain_value(unsigned bits) {
  const int exponent = int(bits >> 7 & 255);
  const double significand = bits & 127;
  return exponent == 0 ? std::ldexp(significand, -133) : std::ldexp(significand + 128, exponent - 134);
}

// Values of the type stay; between two neighbours the nearer wins, half way the even one.
void expect_rounding(DType type, double (*value)(unsigned), unsigned infinity) {
  for (unsigned bits = 0; bits + 1 < infinity; ++bits) {
    const double low = value(bits), high = value(bits + 1), middle = (low + high) / 2;
    ASSERT_EQ(round_to(low, type), low);
    ASSERT_EQ(round_to(-high, type), -high);
    ASSERT_EQ(round_to(middle, type), bits % 2 == 0 ? low : high);
    ASSERT_EQ(round_to(std::nextafter(middle, low), type), low);
    ASSERT_EQ(round_to(std::nextafter(middle, high), type), high);
  }
}

TEST(FoldTest, RoundingExhaustively) {
  expect_rounding(kFloat16, half_value, 31 << 10);
  expect_rounding(kBFloat16, brain_value, 255 << 7);
  EXPECT_EQ(round_to(65519.0, kFloat16), 65504.0);
  EXPECT_TRUE(std::isinf(round_to(65520.0, kFloat16)));
  EXPECT_TRUE(std::isinf(round_to(1e39, kBFloat16)));
  EXPECT_TRUE(std::signbit(round_to(-1e-30, kFloat16)));
  EXPECT_TRUE(std::isnan(round_to(std::nan(""), kFloat16)));
  EXPECT_EQ(round_to(0.1, kFloat32), double(0.1f));
}

TEST(FoldTest, Floats) {
  const auto text = [](const Expr& e) {
    const Expr result = fold(e);
    return result ? to_text(result) : "no";
  };
  const auto f = [](double value, DType type = kFloat32) { return float_imm(value, type); };
  EXPECT_EQ(text(binary(BinaryOp::add, f(1), f(2))), "3.0");
  EXPECT_EQ(text(binary(BinaryOp::div, f(1), f(3))), to_text(f(double(1.0f / 3.0f))));
  EXPECT_EQ(text(binary(BinaryOp::add, f(2048, kFloat16), f(1, kFloat16))), "2048.0f16");
  EXPECT_EQ(text(binary(BinaryOp::div, f(1), f(0))), "inf");
  EXPECT_EQ(text(binary(BinaryOp::pow, f(2), f(3))), "no");
  EXPECT_EQ(text(math(MathFn::exp, f(1))), "no");
  EXPECT_EQ(text(math(MathFn::floor, f(-1.5))), "-2.0");
  EXPECT_EQ(text(math(MathFn::isnan, f(std::nan("")))), "true");
  EXPECT_EQ(text(binary(BinaryOp::lt, f(std::nan("")), f(1))), "false");
  EXPECT_EQ(text(binary(BinaryOp::max, f(std::nan("")), f(1))), "1.0");
  EXPECT_EQ(text(binary(BinaryOp::max, f(1), f(std::nan("")))), "nan");
  EXPECT_EQ(text(unary(UnaryOp::neg, f(std::nan(""), kFloat4E2M1))), to_text(f(-6, kFloat4E2M1)));  // has no NaN
  EXPECT_EQ(text(cast(f(-2.75), kInt32)), "-2");
  EXPECT_EQ(text(cast(f(1e10), kInt32)), "no");
  EXPECT_EQ(text(cast(f(std::nan("")), kInt32)), "no");
  EXPECT_EQ(text(cast(int_imm(300), kInt8)), "44i8");
  EXPECT_EQ(text(cast(int_imm(3), kFloat16)), "3.0f16");
  EXPECT_EQ(text(cast(f(0.1), kBFloat16)), to_text(f(0.10009765625, kBFloat16)));
}

}  // namespace
}  // namespace tilepilot::passes
