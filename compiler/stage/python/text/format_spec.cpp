#include "compiler/stage/python/text/format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "compiler/stage/python/containers/sequence.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/classes.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::stage {

namespace {

constexpr int64_t kWidest = 1'000'000;

// `digits` are the significant digits, the point stands after the first `point` of them.
struct Decimal {
  std::string digits;
  int point = 0;
};

Decimal shortest_digits(double value) {
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, std::fabs(value), std::chars_format::scientific).ptr;
  std::string_view shown(text, static_cast<size_t>(end - text));
  size_t e = shown.find('e');
  Decimal decimal;
  for (char c : shown.substr(0, e)) {
    if (c != '.') decimal.digits += c;
  }
  decimal.point = std::atoi(std::string(shown.substr(e + 1)).c_str()) + 1;
  return decimal;
}

std::string exponent_text(int exponent) {
  return fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
}

std::string special_float(double value, bool upper) {
  std::string text = std::isnan(value) ? "nan" : "inf";
  if (upper) std::transform(text.begin(), text.end(), text.begin(), [](char c) { return static_cast<char>(c - 32); });
  return text;
}

// Digits before the point in groups, filled with zeros to `width` characters.
std::string group_digits(std::string digits, char separator, size_t every, size_t width) {
  if (!separator) return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
  std::string reversed;
  size_t count = 0;
  for (size_t i = digits.size(); i > 0 || reversed.size() < width; ++count) {
    if (count > 0 && count % every == 0) reversed += separator;
    reversed += i > 0 ? digits[--i] : '0';
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

std::string sign_text(bool negative, char sign) {
  if (negative) return "-";
  return sign == '-' ? "" : std::string(1, sign);
}

std::string pad(std::string_view text, const FormatSpec& spec, char default_align) {
  auto length = static_cast<int64_t>(count_characters(text));
  if (length >= spec.width) return std::string(text);
  int64_t missing = spec.width - length;
  char align = spec.align ? spec.align : default_align;
  int64_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string result;
  for (int64_t i = 0; i < before; ++i) result += spec.fill;
  result += text;
  for (int64_t i = before; i < missing; ++i) result += spec.fill;
  return result;
}

// Sign, prefix and digits put together; `=` alignment and zero filling go between prefix and digits.
struct NumberText {
  std::string sign;
  std::string prefix;
  std::string whole;
  std::string rest;  // point, fraction, exponent, percent sign
};

std::string lay_out(const NumberText& number, const FormatSpec& spec, size_t group_every) {
  bool inside = spec.align == '=' && spec.fill == "0";
  size_t others = number.sign.size() + number.prefix.size() + number.rest.size();
  size_t wanted = inside && spec.width > static_cast<int64_t>(others) ? static_cast<size_t>(spec.width) - others : 0;
  std::string whole = group_digits(number.whole, spec.grouping, group_every, wanted);
  std::string head = number.sign + number.prefix, tail = whole + number.rest;
  if (spec.align == '=') {
    FormatSpec only_tail = spec;
    only_tail.width = std::max<int64_t>(0, spec.width - static_cast<int64_t>(head.size()));
    only_tail.align = '>';
    return head + pad(tail, only_tail, '>');
  }
  return pad(head + tail, spec, '>');
}

// With a point even if no digit follows it, for the alternate form.
std::string fixed_digits(double value, int64_t precision, bool point) {
  std::string text = fmt::format("{:.{}f}", std::fabs(value), static_cast<int>(precision));
  return point && precision == 0 ? text + "." : text;
}

std::string scientific_digits(double value, int64_t precision, bool point) {
  std::string text = fmt::format("{:.{}e}", std::fabs(value), static_cast<int>(precision));
  if (point && precision == 0) text.insert(text.find('e'), ".");
  return text;
}

void drop_trailing_zeros(std::string& text) {
  if (text.find('.') == std::string::npos) return;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
}

// The `g` format; `keep_point`: at least one digit after the point (the format without a type).
std::string general_digits(double value, const FormatSpec& spec, bool keep_point) {
  int64_t precision = spec.precision < 0 ? 6 : std::max<int64_t>(1, spec.precision);
  std::string scientific = scientific_digits(value, precision - 1, spec.alternate);
  size_t e = scientific.find('e');
  int exponent = std::atoi(scientific.c_str() + e + 1);
  int64_t limit = keep_point ? precision - 1 : precision;
  if (exponent < -4 || exponent >= limit) {
    std::string mantissa = scientific.substr(0, e);
    if (!spec.alternate) drop_trailing_zeros(mantissa);
    return mantissa + exponent_text(exponent);
  }
  std::string text = fixed_digits(value, std::max<int64_t>(0, precision - 1 - exponent), spec.alternate);
  if (!spec.alternate) drop_trailing_zeros(text);
  if (keep_point && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string shortest_text(double value, bool point) {
  std::string text = repr_float(std::fabs(value));
  if (point && text.find('.') == std::string::npos) text.insert(text.find('e'), ".");
  return text;
}

std::string float_digits(double value, const FormatSpec& spec) {
  int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  switch (spec.type) {
    case 'e':
    case 'E':
      return scientific_digits(value, precision, spec.alternate);
    case 'f':
    case 'F':
      return fixed_digits(value, precision, spec.alternate);
    case '%':
      return fixed_digits(value * 100, precision, spec.alternate) + "%";
    case 'g':
    case 'G':
    case 'n':
      return general_digits(value, spec, false);
    default:
      if (spec.precision >= 0) return general_digits(value, spec, true);
      return shortest_text(value, spec.alternate);
  }
}

Error bad_spec(Span span, std::string_view what) {
  return value_error(span, fmt::format("invalid format specifier: {}", what));
}

Error unknown_code(char code, const Value& value, Span span) {
  return value_error(span, fmt::format("unknown format code '{}' for object of type '{}'", code, value.type_name()));
}

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Reads a format specification from left to right.
class SpecReader {
 public:
  SpecReader(std::string_view text, Span span) : text_(text), span_(span) {}

  Result<FormatSpec> read() {
    FormatSpec spec;
    fill_and_align(spec);
    if (at('+') || at('-') || at(' ')) spec.sign = text_[next_++];
    if (take('#')) spec.alternate = true;
    if (take('0')) {
      if (!fill_given_) spec.fill = "0";
      if (!spec.align) spec.align = '=';
    }
    spec.width = TRY(number(0));
    if (at(',') || at('_')) spec.grouping = text_[next_++];
    if (take('.')) {
      spec.precision = TRY(number(-1));
      if (spec.precision < 0) return bad_spec(span_, "the precision is missing");
    }
    if (next_ < text_.size()) spec.type = text_[next_++];
    if (next_ != text_.size()) return bad_spec(span_, fmt::format("'{}'", text_));
    return spec;
  }

 private:
  bool at(char c) const { return next_ < text_.size() && text_[next_] == c; }
  bool take(char c) {
    if (!at(c)) return false;
    ++next_;
    return true;
  }
  void fill_and_align(FormatSpec& spec) {
    size_t fill_size = byte_position(text_, 1);
    if (fill_size > 0 && fill_size < text_.size() && is_align(text_[fill_size])) {
      spec.fill = std::string(text_.substr(0, fill_size));
      spec.align = text_[fill_size];
      next_ = fill_size + 1;
      fill_given_ = true;
    } else if (!text_.empty() && is_align(text_[0])) {
      spec.align = text_[next_++];
    }
    spec.align_given = spec.align != 0;
  }
  Result<int64_t> number(int64_t fallback) {
    if (next_ >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[next_]))) return fallback;
    int64_t value = 0;
    while (next_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[next_]))) {
      value = value * 10 + (text_[next_++] - '0');
      if (value > kWidest) return bad_spec(span_, "a width or precision is too large");
    }
    return value;
  }

  std::string_view text_;
  Span span_;
  size_t next_ = 0;
  bool fill_given_ = false;
};

Result<std::string> format_number_as_text(const Value& value, const FormatSpec& spec, Span span) {
  if (auto integer = value.as_index()) {
    bool as_float = spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
    if (as_float) return format_float(static_cast<double>(*integer), spec);
    if (spec.type && std::string_view("bcdoxXn").find(spec.type) == std::string_view::npos) {
      return unknown_code(spec.type, value, span);
    }
    return format_integer(*integer, spec, span);
  }
  if (spec.type && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos) {
    return unknown_code(spec.type, value, span);
  }
  return format_float(*value.if_float(), spec);
}

}  // namespace

std::string repr_float(double value) {
  if (!std::isfinite(value)) return (value < 0 ? "-" : "") + special_float(value, false);
  std::string sign = std::signbit(value) ? "-" : "";
  if (value == 0) return sign + "0.0";
  Decimal decimal = shortest_digits(value);
  int size = static_cast<int>(decimal.digits.size());
  if (decimal.point > 16 || decimal.point < -3) {
    std::string mantissa = decimal.digits.substr(0, 1);
    if (size > 1) mantissa += "." + decimal.digits.substr(1);
    return sign + mantissa + exponent_text(decimal.point - 1);
  }
  if (decimal.point <= 0) return sign + "0." + std::string(static_cast<size_t>(-decimal.point), '0') + decimal.digits;
  if (decimal.point >= size) {
    return sign + decimal.digits + std::string(static_cast<size_t>(decimal.point - size), '0') + ".0";
  }
  auto point = static_cast<size_t>(decimal.point);
  return sign + decimal.digits.substr(0, point) + "." + decimal.digits.substr(point);
}

std::string repr_text(std::string_view text) {
  bool single = text.find('\'') != std::string_view::npos;
  char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string shown(1, quote);
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      shown += {'\\', c};
    else if (c == '\n')
      shown += "\\n";
    else if (c == '\r')
      shown += "\\r";
    else if (c == '\t')
      shown += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  return shown + quote;
}

std::string utf8_character(uint32_t code) {
  std::string text;
  syntax::append_utf8(text, code);
  return text;
}

std::string escape_beyond_ascii(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      shown += text[at++];
      continue;
    }
    const syntax::CodePoint point = syntax::code_point_at(text, at);
    const auto code = static_cast<uint32_t>(point.value);
    shown += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    at += point.length;
  }
  return shown;
}

Result<FormatSpec> parse_format_spec(std::string_view text, const Value&, Span span) {
  return SpecReader(text, span).read();
}

std::string format_text(std::string_view text, const FormatSpec& spec) {
  if (spec.precision >= 0) text = text.substr(0, byte_position(text, static_cast<size_t>(spec.precision)));
  return pad(text, spec, '<');
}

std::string format_float(double value, const FormatSpec& spec) {
  bool upper = spec.type == 'E' || spec.type == 'F' || spec.type == 'G';
  NumberText number;
  number.sign = sign_text(std::signbit(value) && !std::isnan(value), spec.sign);
  if (!std::isfinite(value)) {
    number.rest = special_float(value, upper) + (spec.type == '%' ? "%" : "");
    FormatSpec plain = spec;
    if (plain.fill == "0") plain.fill = spec.align == '=' ? "0" : plain.fill;
    plain.grouping = 0;
    return lay_out(number, plain, 3);
  }
  std::string digits = float_digits(value, spec);
  if (upper) std::replace(digits.begin(), digits.end(), 'e', 'E');
  size_t end = digits.find_first_not_of("0123456789");
  number.whole = digits.substr(0, end);
  if (end != std::string::npos) number.rest = digits.substr(end);
  return lay_out(number, spec, 3);
}

std::string lay_out_integer(bool negative, std::string digits, const FormatSpec& spec) {
  NumberText number;
  number.sign = sign_text(negative, spec.sign);
  number.whole = std::move(digits);
  const bool other_base = spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X';
  if (other_base && spec.alternate) number.prefix = {'0', spec.type};
  return lay_out(number, spec, other_base ? 4 : 3);
}

Result<std::string> format_integer(int64_t value, const FormatSpec& spec, Span span) {
  if (spec.precision >= 0) return value_error(span, "precision not allowed in integer format specifier");
  const uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  switch (spec.type) {
    case 'b':
      return lay_out_integer(value < 0, fmt::format("{:b}", size), spec);
    case 'o':
      return lay_out_integer(value < 0, fmt::format("{:o}", size), spec);
    case 'x':
      return lay_out_integer(value < 0, fmt::format("{:x}", size), spec);
    case 'X':
      return lay_out_integer(value < 0, fmt::format("{:X}", size), spec);
    case 'c':
      if (value < 0 || value > 0x10FFFF) return value_error(span, "%c arg not in range(0x110000)");
      return pad(utf8_character(static_cast<uint32_t>(value)), spec, '<');
    default:
      return lay_out_integer(value < 0, fmt::format("{}", size), spec);
  }
}

Result<std::string> format_value(Interpreter& interpreter, const Value& value, const std::string& spec, Span span) {
  // What a class defines is for its instances.
  if (value.if_object() && !value.get_if<ClassObject>()) {
    static const Name kFormat("__format__");
    auto method = interpreter.get_attribute(value, kFormat, span);
    if (method.ok()) {
      Value text = TRY(interpreter.call(*method, CallArgs{{Value(spec)}, {}, span, {}}));
      if (text.if_string()) return *text.if_string();
      return type_error(span, fmt::format("__format__ must return a str, not {}", text.type_name()));
    }
  }
  if (spec.empty()) return interpreter.str(value);
  FormatSpec parsed = TRY(parse_format_spec(spec, value, span));
  if (value.as_number()) return format_number_as_text(value, parsed, span);
  if (value.if_string()) {
    if (parsed.type && parsed.type != 's') return unknown_code(parsed.type, value, span);
    if (parsed.align == '=' && parsed.align_given) {
      return value_error(span, "'=' alignment not allowed in string format specifier");
    }
    if (parsed.align == '=') parsed.align = '<';
    return format_text(*value.if_string(), parsed);
  }
  return type_error(span, fmt::format("unsupported format string passed to {}.__format__", value.type_name()));
}

Result<std::string> format_converted(Interpreter& interpreter, const Value& value, char conversion,
                                     const std::string& spec, Span span) {
  if (!conversion) return format_value(interpreter, value, spec, span);
  std::string shown = conversion == 's' ? TRY(interpreter.str(value)) : TRY(interpreter.repr(value));
  const Value text = conversion == 'a' ? escape_beyond_ascii(shown) : std::move(shown);
  return format_value(interpreter, text, spec, span);
}

}  // namespace tilepilot::stage
