// Number literals of Python: finding where one ends, and its value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace tilepilot::syntax {

struct NumberError {
  bool unsupported = false;  // valid Python, but outside the subset
  std::string message;
  std::string hint;
};

// An integer of 2**63 or more, as its digits in that base, without prefix and underscores.
struct WideInteger {
  std::string digits;
  int base = 10;
  friend bool operator==(const WideInteger&, const WideInteger&) = default;
};

std::string to_text(const WideInteger& integer);  // as a literal

struct NumberToken {
  uint32_t length;  // bytes, at least 1; covers the whole malformed word after an error
  std::variant<int64_t, WideInteger, double, NumberError> value;
};

// `text` starts with a digit, or with a dot and a digit.
NumberToken read_number(std::string_view text);

}  // namespace tilepilot::syntax
