// Whole numbers of any size, for results that leave 64 bits: a sign and a magnitude. Bitwise operators see the two's
// complement with endless sign bits, as Python's do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::stage {

class BigInteger {
 public:
  BigInteger(int64_t value = 0);
  // Digits of a base from 2 to 36 and nothing else; nullopt otherwise.
  static std::optional<BigInteger> parse(std::string_view digits, int base);
  // The whole part of a finite number.
  static BigInteger truncate(double value);

  bool is_negative() const { return negative_; }
  bool is_zero() const { return words_.empty(); }
  size_t bit_length() const;  // of the magnitude
  size_t bit_count() const;   // ones of the magnitude
  std::optional<int64_t> to_int64() const;
  std::optional<uint64_t> to_uint64() const;
  // The nearest double, ties to even; infinite if it is too large.
  double to_double() const;
  // The magnitude in a base from 2 to 36.
  std::string digits(int base = 10) const;
  std::string to_text() const { return (negative_ ? "-" : "") + digits(); }

  // -1, 0 or 1.
  int compare(const BigInteger& other) const;
  friend bool operator==(const BigInteger& a, const BigInteger& b) { return a.compare(b) == 0; }
  BigInteger operator-() const;
  friend BigInteger operator+(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator-(const BigInteger& a, const BigInteger& b) { return a + -b; }
  friend BigInteger operator*(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator&(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator|(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator^(const BigInteger& a, const BigInteger& b);
  BigInteger shifted_left(size_t count) const;
  BigInteger shifted_right(size_t count) const;  // rounds down

  // floor(a / b) and what is left, which has b's sign; b is not zero.
  struct Division;
  static Division divide(const BigInteger& a, const BigInteger& b);

 private:
  using Words = std::vector<uint32_t>;  // least first, no zeros at the end
  BigInteger(Words words, bool negative);
  Words complement(size_t size) const;
  static BigInteger from_complement(Words words);
  template <class Op>
  static BigInteger bitwise(const BigInteger& a, const BigInteger& b, Op op);

  Words words_;
  bool negative_ = false;
};

struct BigInteger::Division {
  BigInteger quotient, remainder;
};

// a / b rounded once; b is not zero.
double true_divide(const BigInteger& a, const BigInteger& b);
// value rounded to a multiple of 10**places, ties to even.
BigInteger round_to_power_of_ten(const BigInteger& value, size_t places);

}  // namespace tilepilot::stage
