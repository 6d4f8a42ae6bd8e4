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

struct NumberToken {
  uint32_t length;  // bytes, at least 1; covers the whole malformed word after an error
  std::variant<int64_t, double, NumberError> value;
};

// `text` starts with a digit, or with a dot and a digit. The integer 2**63 is given as INT64_MIN: only a minus sign
// before it makes it fit, which the parser knows.
NumberToken read_number(std::string_view text);

}  // namespace tilepilot::syntax
