// Text from values: repr of floats and strings, the format mini-language of f-strings and format(), str.format and the
// % operator.
#pragma once

#include <string>

#include "compiler/stage/python/objects/value.h"

namespace tilepilot::stage {

// As Python's repr shows them: shortest digits that read back the same; quotes and escapes.
std::string repr_float(double value);
std::string repr_text(std::string_view text);
// With `\x`, `\u` and `\U` for what is not ASCII, as ascii() shows it.
std::string escape_beyond_ascii(std::string_view text);
std::string utf8_character(uint32_t code);  // in UTF-8

// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct FormatSpec {
  std::string fill = " ";
  char align = 0;            // < > ^ = or none
  bool align_given = false;  // else `=` comes from a zero before the width
  char sign = '-';
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;  // , or _
  int64_t precision = -1;
  char type = 0;
};
Result<FormatSpec> parse_format_spec(std::string_view text, const Value& value, Span span);

Result<std::string> format_value(Interpreter& interpreter, const Value& value, const std::string& spec, Span span);
// With `!r`, `!s` or `!a` applied first (0: none).
Result<std::string> format_converted(Interpreter& interpreter, const Value& value, char conversion,
                                     const std::string& spec, Span span);
Result<std::string> format_integer(int64_t value, const FormatSpec& spec, Span span);
// Digits of an integer in the base of `spec.type`, with sign, prefix, grouping and width.
std::string lay_out_integer(bool negative, std::string digits, const FormatSpec& spec);
std::string format_float(double value, const FormatSpec& spec);
std::string format_text(std::string_view text, const FormatSpec& spec);

// template.format(*positional, **keywords)
Result<std::string> format_template(Interpreter& interpreter, const std::string& text, const CallArgs& args);
// text % arguments
Result<std::string> format_percent(Interpreter& interpreter, const std::string& text, const Value& arguments,
                                   Span span);

}  // namespace tilepilot::stage
