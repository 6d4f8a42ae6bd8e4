#include "compiler/stage/python/objects/big_integer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tilepilot::stage {

namespace {

using Words = std::vector<uint32_t>;
constexpr size_t kWordBits = 32;

void trim(Words& words) {
  while (!words.empty() && words.back() == 0) words.pop_back();
}

int compare_words(const Words& a, const Words& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

Words add_words(const Words& a, const Words& b) {
  Words sum(std::max(a.size(), b.size()) + 1);
  uint64_t carry = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    carry += (i < a.size() ? a[i] : 0) + uint64_t{i < b.size() ? b[i] : 0};
    sum[i] = static_cast<uint32_t>(carry);
    carry >>= kWordBits;
  }
  trim(sum);
  return sum;
}

// a - b, where a >= b.
Words subtract_words(const Words& a, const Words& b) {
  Words difference(a.size());
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    borrow += int64_t{a[i]} - int64_t{i < b.size() ? b[i] : 0};
    difference[i] = static_cast<uint32_t>(borrow);
    borrow >>= kWordBits;
  }
  trim(difference);
  return difference;
}

// words = words * factor + addend.
void multiply_by_word(Words& words, uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (uint32_t& word : words) {
    carry += uint64_t{word} * factor;
    word = static_cast<uint32_t>(carry);
    carry >>= kWordBits;
  }
  if (carry) words.push_back(static_cast<uint32_t>(carry));
}

// words = words / divisor; gives the remainder.
uint32_t divide_by_word(Words& words, uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = words.size(); i-- > 0;) {
    rest = rest << kWordBits | words[i];
    words[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  trim(words);
  return static_cast<uint32_t>(rest);
}

Words shift_words(const Words& words, size_t count) {
  if (words.empty()) return {};
  const size_t skipped = count / kWordBits, bits = count % kWordBits;
  Words shifted(words.size() + skipped + 1);
  for (size_t i = 0; i < words.size(); ++i) {
    uint64_t wide = uint64_t{words[i]} << bits;
    shifted[i + skipped] |= static_cast<uint32_t>(wide);
    shifted[i + skipped + 1] = static_cast<uint32_t>(wide >> kWordBits);
  }
  trim(shifted);
  return shifted;
}

// Long division by words (Knuth's algorithm D): the divisor's top bit is set, so that a quotient digit guessed from the
// leading words is at most two too large. `rest` has the dividend and a zero above it; it keeps the remainder.
uint32_t quotient_digit(Words& rest, const Words& divisor, size_t at) {
  const size_t size = divisor.size();
  const uint64_t top = uint64_t{rest[at + size]} << kWordBits | rest[at + size - 1];
  uint64_t guess = top / divisor[size - 1], left = top % divisor[size - 1];
  while (guess >> kWordBits || guess * divisor[size - 2] > (left << kWordBits | rest[at + size - 2])) {
    --guess;
    left += divisor[size - 1];
    if (left >> kWordBits) break;
  }
  uint64_t carry = 0;
  int64_t borrow = 0;
  for (size_t i = 0; i <= size; ++i) {
    carry += i < size ? guess * divisor[i] : 0;
    borrow += int64_t{rest[at + i]} - static_cast<int64_t>(carry & 0xFFFFFFFF);
    rest[at + i] = static_cast<uint32_t>(borrow);
    borrow >>= kWordBits;
    carry >>= kWordBits;
  }
  if (borrow == 0) return static_cast<uint32_t>(guess);
  carry = 0;
  for (size_t i = 0; i <= size; ++i) {
    carry += uint64_t{rest[at + i]} + (i < size ? divisor[i] : 0);
    rest[at + i] = static_cast<uint32_t>(carry);
    carry >>= kWordBits;
  }
  return static_cast<uint32_t>(guess - 1);
}

struct WordDivision {
  Words quotient, rest;
};
WordDivision divide_words(const Words& a, const Words& b) {
  if (compare_words(a, b) < 0) return {{}, a};
  if (b.size() == 1) {
    Words quotient = a;
    uint32_t rest = divide_by_word(quotient, b[0]);
    return {std::move(quotient), rest ? Words{rest} : Words()};
  }
  const auto shift = static_cast<size_t>(std::countl_zero(b.back()));
  const Words divisor = shift_words(b, shift);
  Words rest = shift_words(a, shift);
  rest.resize(a.size() + 1);
  Words quotient(a.size() - b.size() + 1);
  for (size_t at = quotient.size(); at-- > 0;) quotient[at] = quotient_digit(rest, divisor, at);
  trim(quotient);
  trim(rest);
  if (shift > 0) divide_by_word(rest, uint32_t{1} << shift);
  return {std::move(quotient), std::move(rest)};
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

}  // namespace

BigInteger::BigInteger(int64_t value) : negative_(value < 0) {
  uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  for (; size; size >>= kWordBits) words_.push_back(static_cast<uint32_t>(size));
}

BigInteger::BigInteger(Words words, bool negative) : words_(std::move(words)), negative_(negative) {
  trim(words_);
  negative_ = negative_ && !words_.empty();
}

std::optional<BigInteger> BigInteger::parse(std::string_view digits, int base) {
  Words words;
  for (char c : digits) {
    const int digit = digit_value(c);
    if (digit >= base) return std::nullopt;
    multiply_by_word(words, static_cast<uint32_t>(base), static_cast<uint32_t>(digit));
  }
  if (digits.empty()) return std::nullopt;
  return BigInteger(std::move(words), false);
}

BigInteger BigInteger::truncate(double value) {
  int exponent = 0;
  const double fraction = std::frexp(std::trunc(value), &exponent);
  constexpr int kDigits = std::numeric_limits<double>::digits;
  const BigInteger mantissa(static_cast<int64_t>(std::ldexp(fraction, kDigits)));
  if (exponent >= kDigits) return mantissa.shifted_left(static_cast<size_t>(exponent - kDigits));
  const BigInteger whole =
      (mantissa.negative_ ? -mantissa : mantissa).shifted_right(static_cast<size_t>(kDigits - exponent));
  return mantissa.negative_ ? -whole : whole;
}

size_t BigInteger::bit_length() const {
  return words_.empty() ? 0 : words_.size() * kWordBits - static_cast<size_t>(std::countl_zero(words_.back()));
}

size_t BigInteger::bit_count() const {
  size_t count = 0;
  for (uint32_t word : words_) count += static_cast<size_t>(std::popcount(word));
  return count;
}

std::optional<uint64_t> BigInteger::to_uint64() const {
  if (negative_ || words_.size() > 2) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = words_.size(); i-- > 0;) value = value << kWordBits | words_[i];
  return value;
}

std::optional<int64_t> BigInteger::to_int64() const {
  auto size = (negative_ ? -*this : *this).to_uint64();
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (!size || *size > kLimit || (*size == kLimit && !negative_)) return std::nullopt;
  return static_cast<int64_t>(negative_ ? ~*size + 1 : *size);
}

double BigInteger::to_double() const {
  const size_t length = bit_length();
  if (length > static_cast<size_t>(std::numeric_limits<double>::max_exponent))
    return negative_ ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  // The leading 64 bits; a last bit that stands for all below makes the one rounding right.
  const size_t dropped = length > 64 ? length - 64 : 0;
  const BigInteger magnitude(words_, false);
  const BigInteger head = magnitude.shifted_right(dropped);
  uint64_t bits = *head.to_uint64();
  if (dropped > 0 && !(head.shifted_left(dropped) == magnitude)) bits |= 1;
  const double value = std::ldexp(static_cast<double>(bits), static_cast<int>(dropped));
  return negative_ ? -value : value;
}

std::string BigInteger::digits(int base) const {
  // As many digits at once as fit a word.
  uint32_t unit = static_cast<uint32_t>(base);
  size_t width = 1;
  for (; uint64_t{unit} * static_cast<uint64_t>(base) <= 0xFFFFFFFF; ++width) unit *= static_cast<uint32_t>(base);
  std::string text;
  for (Words rest = words_; !rest.empty();) {
    uint32_t group = divide_by_word(rest, unit);
    for (size_t i = 0; i < width && (group > 0 || !rest.empty()); ++i) {
      text.push_back("0123456789abcdefghijklmnopqrstuvwxyz"[group % static_cast<uint32_t>(base)]);
      group /= static_cast<uint32_t>(base);
    }
  }
  std::reverse(text.begin(), text.end());
  return text.empty() ? "0" : text;
}

int BigInteger::compare(const BigInteger& other) const {
  if (negative_ != other.negative_) return negative_ ? -1 : 1;
  const int order = compare_words(words_, other.words_);
  return negative_ ? -order : order;
}

BigInteger BigInteger::operator-() const { return {words_, !negative_}; }

BigInteger operator+(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ == b.negative_) return {add_words(a.words_, b.words_), a.negative_};
  if (compare_words(a.words_, b.words_) >= 0) return {subtract_words(a.words_, b.words_), a.negative_};
  return {subtract_words(b.words_, a.words_), b.negative_};
}

BigInteger operator*(const BigInteger& a, const BigInteger& b) {
  Words product(a.words_.size() + b.words_.size());
  for (size_t i = 0; i < a.words_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t k = 0; k < b.words_.size(); ++k) {
      carry += uint64_t{a.words_[i]} * b.words_[k] + product[i + k];
      product[i + k] = static_cast<uint32_t>(carry);
      carry >>= kWordBits;
    }
    product[i + b.words_.size()] = static_cast<uint32_t>(carry);
  }
  return {std::move(product), a.negative_ != b.negative_};
}

BigInteger BigInteger::shifted_left(size_t count) const { return {shift_words(words_, count), negative_}; }

BigInteger BigInteger::shifted_right(size_t count) const {
  const size_t skipped = std::min(count / kWordBits, words_.size()), bits = count % kWordBits;
  Words shifted(words_.begin() + static_cast<std::ptrdiff_t>(skipped), words_.end());
  bool dropped = std::any_of(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(skipped),
                             [](uint32_t word) { return word != 0; });
  trim(shifted);
  if (bits > 0 && !shifted.empty()) dropped = divide_by_word(shifted, uint32_t{1} << bits) != 0 || dropped;
  BigInteger result(std::move(shifted), negative_);
  return negative_ && dropped ? result - BigInteger(1) : result;
}

BigInteger::Division BigInteger::divide(const BigInteger& a, const BigInteger& b) {
  WordDivision division = divide_words(a.words_, b.words_);
  Division result{{std::move(division.quotient), a.negative_ != b.negative_}, {std::move(division.rest), a.negative_}};
  if (result.remainder.is_zero() || a.negative_ == b.negative_) return result;
  return {result.quotient - BigInteger(1), result.remainder + b};
}

BigInteger::Words BigInteger::complement(size_t size) const {
  Words words = words_;
  words.resize(size);
  if (!negative_) return words;
  uint64_t carry = 1;
  for (uint32_t& word : words) {
    carry += static_cast<uint32_t>(~word);
    word = static_cast<uint32_t>(carry);
    carry >>= kWordBits;
  }
  return words;
}

BigInteger BigInteger::from_complement(Words words) {
  if (words.back() >> (kWordBits - 1) == 0) return {std::move(words), false};
  BigInteger magnitude(std::move(words), true);  // of 2**n - value
  Words whole(magnitude.words_.size() + 1);
  whole.back() = 1;
  return {subtract_words(whole, magnitude.words_), true};
}

template <class Op>
BigInteger BigInteger::bitwise(const BigInteger& a, const BigInteger& b, Op op) {
  const size_t size = std::max(a.words_.size(), b.words_.size()) + 1;
  Words left = a.complement(size);
  const Words right = b.complement(size);
  for (size_t i = 0; i < size; ++i) left[i] = op(left[i], right[i]);
  return from_complement(std::move(left));
}

BigInteger operator&(const BigInteger& a, const BigInteger& b) {
  return BigInteger::bitwise(a, b, [](uint32_t x, uint32_t y) { return x & y; });
}
BigInteger operator|(const BigInteger& a, const BigInteger& b) {
  return BigInteger::bitwise(a, b, [](uint32_t x, uint32_t y) { return x | y; });
}
BigInteger operator^(const BigInteger& a, const BigInteger& b) {
  return BigInteger::bitwise(a, b, [](uint32_t x, uint32_t y) { return x ^ y; });
}

// The quotient gets more than 64 bits, the lowest standing for all that is left out.
double true_divide(const BigInteger& a, const BigInteger& b) {
  const auto wanted = static_cast<int64_t>(b.bit_length()) - static_cast<int64_t>(a.bit_length()) + 66;
  const auto shift = static_cast<size_t>(std::max<int64_t>(wanted, 0));
  const BigInteger dividend = (a.is_negative() ? -a : a).shifted_left(shift), divisor = b.is_negative() ? -b : b;
  BigInteger::Division division = BigInteger::divide(dividend, divisor);
  if (!division.remainder.is_zero()) division.quotient = division.quotient | BigInteger(1);
  const double value = std::ldexp(division.quotient.to_double(), -static_cast<int>(shift));
  return a.is_negative() != b.is_negative() ? -value : value;
}

BigInteger round_to_power_of_ten(const BigInteger& value, size_t places) {
  BigInteger unit(1);
  for (size_t i = 0; i < places; ++i) unit = unit * BigInteger(10);
  const BigInteger::Division division = BigInteger::divide(value, unit);
  const int order = (division.remainder * BigInteger(2)).compare(unit);
  const bool odd = !(division.quotient & BigInteger(1)).is_zero();
  const bool up = order > 0 || (order == 0 && odd);
  return (division.quotient + BigInteger(up ? 1 : 0)) * unit;
}

}  // namespace tilepilot::stage
