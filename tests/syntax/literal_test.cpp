// Numbers and strings: values, and what is refused.
#include <gtest/gtest.h>

#include <limits>

#include "tests/syntax/parsed.h"

namespace tilepilot::syntax {
namespace {

using namespace std::string_literals;

int64_t int_value(const std::string& text) { return std::get<IntLiteral>(only_expression(Parsed(text)).node).value; }
double float_value(const std::string& text) { return std::get<FloatLiteral>(only_expression(Parsed(text)).node).value; }
std::string string_value(const std::string& text) {
  return std::get<StringLiteral>(only_expression(Parsed(text)).node).value;
}

TEST(Integers, HaveAllForms) {
  EXPECT_EQ(int_value("0"), 0);
  EXPECT_EQ(int_value("0_0"), 0);
  EXPECT_EQ(int_value("1_000_000"), 1000000);
  EXPECT_EQ(int_value("0xFf_fF"), 65535);
  EXPECT_EQ(int_value("0x_1f"), 31);
  EXPECT_EQ(int_value("0o17"), 15);
  EXPECT_EQ(int_value("0B101"), 5);
  EXPECT_EQ(int_value("9223372036854775807"), std::numeric_limits<int64_t>::max());
}

TEST(Integers, KeepTheirDigitsWhere64BitsDoNotSuffice) {
  auto wide = [](const std::string& text) { return *std::get<IntLiteral>(only_expression(Parsed(text)).node).wide; };
  EXPECT_EQ(wide("9223372036854775808"), (WideInteger{"9223372036854775808", 10}));
  EXPECT_EQ(wide("0xFFFF_FFFF_ffff_ffff"), (WideInteger{"FFFFFFFFffffffff", 16}));
  EXPECT_EQ(wide("0o2_000_000_000_000_000_000_000"), (WideInteger{"2000000000000000000000", 8}));
}

TEST(Floats, HaveAllForms) {
  EXPECT_EQ(float_value("1."), 1.0);
  EXPECT_EQ(float_value(".5"), 0.5);
  EXPECT_EQ(float_value("1e-3"), 1e-3);
  EXPECT_EQ(float_value("1_0.2_5E+1"), 102.5);
  EXPECT_EQ(float_value("0e0"), 0.0);
  EXPECT_EQ(float_value("00.5"), 0.5);
  EXPECT_EQ(float_value("1e999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(float_value("5e-324"), 5e-324);
  EXPECT_EQ(float_value("1e-999"), 0.0);
  EXPECT_EQ(float_value("0.1"), 0.1);
}

TEST(Numbers, AreRefusedWithAReason) {
  auto error = [](const std::string& text) { return Parsed("x = " + text).first_error(); };
  EXPECT_EQ(error("0x"), "1:5 bad_literal: a hexadecimal literal has no digits");
  EXPECT_EQ(error("0b12"), "1:5 bad_literal: digit `2` is not allowed in a binary literal");
  EXPECT_EQ(error("0o8"), "1:5 bad_literal: an octal literal has no digits");
  EXPECT_EQ(error("012"), "1:5 bad_literal: leading zeros in an integer literal");
  EXPECT_EQ(error("1__0"), "1:5 bad_literal: `_` in a number must stand between digits");
  EXPECT_EQ(error("1_"), "1:5 bad_literal: `_` in a number must stand between digits");
  EXPECT_EQ(error("1abc"), "1:5 bad_literal: number literal is followed by a letter");
  EXPECT_EQ(error("1j"), "1:5 unsupported_syntax: imaginary numbers are not supported");
  EXPECT_EQ(error("1.5J"), "1:5 unsupported_syntax: imaginary numbers are not supported");
}

TEST(Numbers, MayTouchAKeyword) {
  EXPECT_EQ(to_source(only_expression(Parsed("1if x else 2"))), "1 if x else 2");
  EXPECT_EQ(to_source(only_expression(Parsed("0x1for x in y"))),
            "31 or x in y");  // the `f` is a digit: then `or` is an operator
}

TEST(Strings, DecodeEscapes) {
  EXPECT_EQ(string_value(R"('a\n\t\\\'\"\a\b\f\v\r')"), "a\n\t\\'\"\a\b\f\v\r");
  EXPECT_EQ(string_value(R"("\x41\u00e9\U0001F600\101\0")"), "A\u00e9\U0001F600A\0"s);
  EXPECT_EQ(string_value(R"("\d\ ")"), "\\d\\ ");
  EXPECT_EQ(string_value("'a\\\nb'"), "ab");
  EXPECT_EQ(string_value("'a\\\r\nb'"), "ab");
  EXPECT_EQ(string_value(R"(r'\n\'')"), R"(\n\')");
  EXPECT_EQ(string_value(R"(U'\u0041')"), "A");
}

TEST(Strings, MayTakeSeveralLinesAndPieces) {
  EXPECT_EQ(string_value("'''a\nb''c'''"), "a\nb''c");
  EXPECT_EQ(string_value("'''a\r\nb'''"), "a\nb");
  EXPECT_EQ(string_value("('a' \"b\"\n  r'\\c')"), "ab\\c");
  EXPECT_EQ(string_value("''"), "");
  EXPECT_EQ(string_value("''''''"), "");
}

TEST(Strings, AreRefusedWithAReason) {
  auto error = [](const std::string& text) { return Parsed("x = " + text).first_error(); };
  EXPECT_EQ(error("'abc\ny = 1"), "1:5 bad_literal: string literal is not closed");
  EXPECT_EQ(error("'''abc\ny = 1"), "1:5 bad_literal: string literal is not closed");
  EXPECT_EQ(error("b'\u00e9'"), "1:5 syntax_error: bytes can only contain ASCII literal characters");
  EXPECT_EQ(error("Rb'a' 'b'"), "1:11 syntax_error: cannot mix bytes and nonbytes literals");
  EXPECT_EQ(error(R"('a\x4')"), "1:7 bad_literal: `\\x` needs 2 hexadecimal digits");
  EXPECT_EQ(error(R"('\U00110000')"), "1:6 bad_literal: U+110000 is not a character");
  EXPECT_EQ(error(R"('\ud800')"), "1:6 bad_literal: U+D800 is not a character");
  EXPECT_EQ(error(R"('\N{DASH}')"), "1:6 unsupported_syntax: named characters `\\N{...}` are not supported");
  EXPECT_EQ(error("bu'a'"), "1:7 syntax_error: expected an operator or the end of the line, found a string");
}

TEST(FormattedStrings, HaveFieldsConversionsAndFormats) {
  Parsed parsed(R"(f"a{{{x!r:>{w}.2f}}}b{y = }c{z=!s}" 'd' f'{ {1: 2}[1] }')");
  ASSERT_NE(parsed.module, nullptr) << render(parsed.sources, parsed.diagnostics);
  const auto& parts = std::get<FormattedString>(only_expression(parsed).node).parts;
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0].text, "a{");
  EXPECT_EQ(parts[0].conversion, 'r');
  const auto& format = std::get<FormattedString>(parts[0].format->node).parts;
  ASSERT_EQ(format.size(), 2U);
  EXPECT_EQ(format[0].text, ">");
  EXPECT_EQ(to_source(*format[0].value), "w");
  EXPECT_EQ(format[1].text, ".2f");
  EXPECT_EQ(parts[1].text, "}b");
  EXPECT_EQ(parts[1].self_text, "y = ");
  EXPECT_EQ(parts[1].conversion, 'r');
  EXPECT_EQ(parts[2].conversion, 's');
  EXPECT_EQ(parts[3].text, "d");
  EXPECT_EQ(to_source(*parts[3].value), "{1: 2}[1]");
}

TEST(FormattedStrings, KeepPositionsOfTheirFields) {
  Parsed parsed("f'ab{value}'");
  const auto& parts = std::get<FormattedString>(only_expression(parsed).node).parts;
  EXPECT_EQ(parsed.sources.text(parts[0].value->span), "value");
}

TEST(FormattedStrings, AreRefusedWithAReason) {
  auto error = [](const std::string& text) { return Parsed(text).first_error(); };
  EXPECT_EQ(error("f'{'"), "1:3 syntax_error: `{` in an f-string is never closed");
  EXPECT_EQ(error("f'}'"), "1:3 syntax_error: a single `}` in an f-string");
  EXPECT_EQ(error("f'{}'"), "1:3 syntax_error: a field of an f-string is empty");
  EXPECT_EQ(error("f'{x!z}'"), "1:5 syntax_error: expected `r`, `s` or `a` after `!` in an f-string");
  EXPECT_EQ(error("f'{x y}'"), "1:6 syntax_error: expected the end of the field, found `y`");
  EXPECT_EQ(error("f'{x:{y:{z}}}'"), "1:9 syntax_error: fields of an f-string nest too deeply");
  EXPECT_EQ(error("f'{x #}'"), "1:6 syntax_error: a comment cannot stand inside an f-string expression");
}

}  // namespace
}  // namespace tilepilot::syntax
