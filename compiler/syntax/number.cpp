#include "compiler/syntax/number.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace tilepilot::syntax {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool goes_on(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

// Digits of a base with single underscores between them. Returns the end; stops before what does not belong.
size_t skip_digits(std::string_view text, size_t at, int base) {
  while (at < text.size()) {
    if (digit_value(text[at]) < base) {
      ++at;
    } else if (text[at] == '_' && at + 1 < text.size() && digit_value(text[at + 1]) < base) {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

std::string without_underscores(std::string_view digits) {
  std::string plain;
  for (char c : digits) {
    if (c != '_') plain.push_back(c);
  }
  return plain;
}

NumberToken fail(std::string_view text, size_t at, std::string message, std::string hint = {}) {
  while (at < text.size() && goes_on(text[at])) ++at;
  return {static_cast<uint32_t>(at), NumberError{false, std::move(message), std::move(hint)}};
}

NumberToken to_integer(std::string_view text, size_t begin, size_t end, int base) {
  std::string digits = without_underscores(text.substr(begin, end - begin));
  int64_t value = 0;
  const auto status = std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ec;
  if (status == std::errc::result_out_of_range)
    return {static_cast<uint32_t>(end), WideInteger{std::move(digits), base}};
  return {static_cast<uint32_t>(end), value};
}

NumberToken to_float(std::string_view text, size_t end) {
  std::string plain = without_underscores(text.substr(0, end));
  double value = 0;
  auto [stop, status] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (status == std::errc::result_out_of_range) value = std::strtod(plain.c_str(), nullptr);
  return {static_cast<uint32_t>(end), value};
}

// A letter right behind a number is an error, except that `1if x else y` is Python.
bool starts_keyword(std::string_view rest) {
  for (std::string_view word : {"and", "else", "for", "if", "in", "is", "not", "or"}) {
    if (rest.substr(0, word.size()) == word && (rest.size() == word.size() || !goes_on(rest[word.size()]))) return true;
  }
  return false;
}

NumberToken check_end(std::string_view text, NumberToken number) {
  size_t end = number.length;
  if (end >= text.size() || !goes_on(text[end]) || std::holds_alternative<NumberError>(number.value)) return number;
  if (text[end] == 'j' || text[end] == 'J') {
    return {number.length + 1, NumberError{true, "imaginary numbers are not supported", {}}};
  }
  if (starts_keyword(text.substr(end))) return number;
  if (text[end] == '_') return fail(text, end, "`_` in a number must stand between digits");
  return fail(text, end, "number literal is followed by a letter", "put an operator or a space between them");
}

NumberToken read_prefixed(std::string_view text, int base, std::string_view kind) {
  size_t begin = text.size() > 2 && text[2] == '_' ? 3 : 2;
  size_t end = skip_digits(text, begin, base);
  if (end == begin) return fail(text, 2, fmt::format("{} literal has no digits", kind));
  if (end < text.size() && is_digit(text[end])) {
    return fail(text, end, fmt::format("digit `{}` is not allowed in {} literal", text[end], kind));
  }
  return check_end(text, to_integer(text, begin, end, base));
}

size_t skip_exponent(std::string_view text, size_t at) {
  if (at >= text.size() || (text[at] | 0x20) != 'e') return at;
  size_t digits = at + 1;
  if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
  size_t end = digits < text.size() && is_digit(text[digits]) ? skip_digits(text, digits, 10) : digits;
  return end == digits ? at : end;
}

}  // namespace

std::string to_text(const WideInteger& integer) {
  return (integer.base == 16 ? "0x" : integer.base == 8 ? "0o" : integer.base == 2 ? "0b" : "") + integer.digits;
}

NumberToken read_number(std::string_view text) {
  if (text[0] == '0' && text.size() > 1) {
    char mark = static_cast<char>(text[1] | 0x20);
    if (mark == 'x') return read_prefixed(text, 16, "a hexadecimal");
    if (mark == 'o') return read_prefixed(text, 8, "an octal");
    if (mark == 'b') return read_prefixed(text, 2, "a binary");
  }
  size_t integer_end = skip_digits(text, 0, 10);
  size_t end = integer_end;
  if (end < text.size() && text[end] == '.') {
    ++end;
    if (end < text.size() && is_digit(text[end])) end = skip_digits(text, end, 10);
  }
  end = skip_exponent(text, end);
  if (end > integer_end) return check_end(text, to_float(text, end));
  bool imaginary = end < text.size() && (text[end] | 0x20) == 'j';
  bool padded = text[0] == '0' && text.substr(0, end).find_first_not_of("0_") != std::string_view::npos;
  if (padded && !imaginary) {
    return fail(text, end, "leading zeros in an integer literal", "write octal numbers with the prefix `0o`");
  }
  return check_end(text, to_integer(text, 0, end, 10));
}

}  // namespace tilepilot::syntax
