// Laws of whole numbers of any size, on random ones of many lengths; small cases against 128-bit arithmetic.
#include "compiler/stage/python/objects/big_integer.h"
#include "tests/rounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace tilepilot::stage {
namespace {

__extension__ typedef __int128 Wide;

BigInteger of(Wide value) {
  std::string digits = "0";
  for (Wide left = value < 0 ? -value : value; left > 0; left /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(left % 10)));
  digits.pop_back();
  const BigInteger size = digits.empty() ? BigInteger() : *BigInteger::parse(digits, 10);
  return value < 0 ? -size : size;
}

class BigIntegers : public ::testing::Test {
 protected:
  // Of up to `words` words, with runs of zeros and ones, where carries go far.
  BigInteger random(size_t words) {
    BigInteger value;
    for (size_t i = pick(words + 1); i > 0; --i) {
      static constexpr int64_t kPatterns[] = {0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF};
      const int64_t word = pick(2) == 0 ? kPatterns[pick(5)] : static_cast<int64_t>(engine_() & 0xFFFFFFFF);
      value = value.shifted_left(32) + BigInteger(word);
    }
    return pick(2) == 0 ? value : -value;
  }
  size_t pick(size_t count) { return engine_() % count; }
  Wide small() {
    const auto value = static_cast<Wide>(static_cast<int64_t>(engine_())) >> pick(64);
    return pick(3) == 0 ? value * static_cast<int64_t>(engine_() >> 2) : value;
  }
  std::mt19937_64 engine_{17};
};

TEST_F(BigIntegers, DivisionAndProductBelongTogether) {
  for (int i = 0; i < rounds(4000); ++i) {
    const BigInteger a = random(8), b = random(5), c = random(3);
    EXPECT_EQ((a + b) - b, a);
    EXPECT_EQ(a * (b + c), a * b + a * c);
    EXPECT_EQ(a.shifted_left(37).shifted_right(37), a);
    if (b.is_zero()) continue;
    const BigInteger::Division division = BigInteger::divide(a, b);
    EXPECT_EQ(division.quotient * b + division.remainder, a) << a.to_text() << " / " << b.to_text();
    EXPECT_TRUE(division.remainder.is_zero() || division.remainder.is_negative() == b.is_negative());
    EXPECT_LT((b.is_negative() ? -division.remainder : division.remainder).compare(b.is_negative() ? -b : b), 0);
  }
}

TEST_F(BigIntegers, BitsFollowTwosComplement) {
  for (int i = 0; i < rounds(4000); ++i) {
    const BigInteger a = random(6), b = random(6);
    EXPECT_EQ((a & b) + (a | b), a + b);
    EXPECT_EQ((a | b) - (a & b), a ^ b);
    EXPECT_EQ(a.shifted_right(13), BigInteger::divide(a, BigInteger(1 << 13)).quotient);
  }
}

TEST_F(BigIntegers, DigitsReadBack) {
  for (int i = 0; i < 1000; ++i) {
    const BigInteger a = random(6), size = a.is_negative() ? -a : a;
    for (int base : {2, 8, 10, 16, 36}) EXPECT_EQ(BigInteger::parse(a.digits(base), base), size);
  }
  EXPECT_EQ(BigInteger::parse("12a", 10), std::nullopt);
  EXPECT_EQ(BigInteger::parse("", 10), std::nullopt);
}

TEST_F(BigIntegers, AgreeWith128Bits) {
  for (int i = 0; i < rounds(20000); ++i) {
    const Wide x = small(), y = small();
    const BigInteger a = of(x), b = of(y);
    EXPECT_EQ(a + b, of(x + y));
    EXPECT_EQ(a.compare(b), x < y ? -1 : x > y ? 1 : 0);
    EXPECT_EQ(a & b, of(x & y));
    EXPECT_EQ(a.to_double(), static_cast<double>(x)) << a.to_text();
    if (y == 0) continue;
    EXPECT_EQ(BigInteger::divide(a, b).quotient, of(x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0)));
  }
}

TEST_F(BigIntegers, FloatsAreExactOrNearest) {
  for (int i = 0; i < rounds(4000); ++i) {
    const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(engine_())), static_cast<int>(pick(900)));
    EXPECT_EQ(BigInteger::truncate(value).to_double(), value);
  }
  EXPECT_EQ(BigInteger::truncate(-3.75).to_int64(), -3);
  EXPECT_EQ(BigInteger::truncate(0.3).to_int64(), 0);
  EXPECT_TRUE(std::isinf(BigInteger(1).shifted_left(1024).to_double()));
  EXPECT_EQ(true_divide(BigInteger(1).shifted_left(2000), BigInteger(-3).shifted_left(1999)), -2.0 / 3.0);
}

TEST_F(BigIntegers, SixtyFourBitsAreRecognized) {
  const BigInteger edge = BigInteger(1).shifted_left(63);
  EXPECT_EQ(edge.to_int64(), std::nullopt);
  EXPECT_EQ((-edge).to_int64(), INT64_MIN);
  EXPECT_EQ((edge - BigInteger(1)).to_int64(), INT64_MAX);
  EXPECT_EQ((edge + edge).to_uint64(), std::nullopt);
  EXPECT_EQ((edge + edge - BigInteger(1)).to_uint64(), UINT64_MAX);
}

}  // namespace
}  // namespace tilepilot::stage
