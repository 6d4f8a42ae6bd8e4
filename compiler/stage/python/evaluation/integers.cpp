#include "compiler/stage/python/evaluation/integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/bytes.h"

namespace tilepilot::stage {

namespace {

// The most bits that a result may have: products of such numbers still take no time that anyone notices.
constexpr size_t kMostBits = size_t{1} << 16;

Error too_many_bits(BinaryOp op, Span span) {
  return make_error(DiagnosticKind::integer_overflow, span,
                    fmt::format("the result of `{}` has more than {} bits", syntax::spelling(op), kMostBits));
}

Result<Value> limited(BigInteger result, BinaryOp op, Span span) {
  if (result.bit_length() > kMostBits) return too_many_bits(op, span);
  return make_integer(std::move(result));
}

Result<Value> power(Interpreter& interpreter, const BigInteger& base, const BigInteger& exponent, Span span) {
  if (exponent.is_negative()) {
    if (base.is_zero()) return division_by_zero(span, "0.0 cannot be raised to a negative power");
    return Value(std::pow(TRY(to_float(interpreter, base, span)), TRY(to_float(interpreter, exponent, span))));
  }
  const bool grows = base.bit_length() > 1;
  auto count = exponent.to_int64();
  if (grows && (!count || static_cast<size_t>(*count) > kMostBits / (base.bit_length() - 1)))
    return too_many_bits(BinaryOp::pow, span);
  const bool odd = !(exponent & BigInteger(1)).is_zero();
  if (!grows) return make_integer(exponent.is_zero() ? BigInteger(1) : odd ? base : base * base);
  BigInteger result(1), factor = base;
  for (auto left = static_cast<uint64_t>(*count); left > 0; left >>= 1) {
    if (left & 1) result = result * factor;
    if (left > 1) factor = factor * factor;
  }
  return limited(std::move(result), BinaryOp::pow, span);
}

Result<Value> shift(BinaryOp op, const BigInteger& value, const BigInteger& count, Span span) {
  if (count.is_negative()) return value_error(span, "negative shift count");
  auto bits = count.to_int64();
  if (op == BinaryOp::shr) {
    const size_t most = value.bit_length() + 1;
    return make_integer(value.shifted_right(bits ? std::min(static_cast<size_t>(*bits), most) : most));
  }
  if (value.is_zero()) return Value(0);
  if (!bits || static_cast<size_t>(*bits) > kMostBits) return too_many_bits(op, span);
  return limited(value.shifted_left(static_cast<size_t>(*bits)), op, span);
}

Result<Value> divide(Interpreter& interpreter, BinaryOp op, const BigInteger& a, const BigInteger& b, Span span) {
  if (b.is_zero())
    return division_by_zero(span, op == BinaryOp::div ? "division by zero" : "integer division or modulo by zero");
  if (op == BinaryOp::div) {
    const double quotient = true_divide(a, b);
    if (std::isfinite(quotient)) return Value(quotient);
    return interpreter.raise("OverflowError", "integer division result too large for a float", span);
  }
  BigInteger::Division division = BigInteger::divide(a, b);
  return make_integer(op == BinaryOp::mod ? std::move(division.remainder) : std::move(division.quotient));
}

// -1, 0 or 1; nullopt if `b` is not a number (NaN). The integer lies outside 64 bits.
std::optional<int> compare_with_float(const BigInteger& a, double b) {
  if (std::isnan(b)) return std::nullopt;
  if (std::isinf(b)) return b > 0 ? -1 : 1;
  const int order = a.compare(BigInteger::truncate(b));
  return order != 0 || b == std::trunc(b) ? order : (b > 0 ? -1 : 1);
}

bool holds(CompareOp op, int order) {
  switch (op) {
    case CompareOp::eq:
      return order == 0;
    case CompareOp::ne:
      return order != 0;
    case CompareOp::lt:
      return order < 0;
    case CompareOp::le:
      return order <= 0;
    case CompareOp::gt:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool is_for_integers(BinaryOp op) {
  return op == BinaryOp::shl || op == BinaryOp::shr || op == BinaryOp::bit_and || op == BinaryOp::bit_or ||
         op == BinaryOp::bit_xor || op == BinaryOp::matmul;
}

// What the built-ins ask an object for.
using Conversion = Result<Value> (*)(Interpreter& interpreter, const BigInteger& value, CallArgs& args);

Result<Value> itself(Interpreter&, const BigInteger& value, CallArgs&) { return make_integer(value); }
Result<Value> as_float(Interpreter& interpreter, const BigInteger& value, CallArgs& args) {
  return Value(TRY(to_float(interpreter, value, args.span)));
}
Result<Value> magnitude(Interpreter&, const BigInteger& value, CallArgs&) {
  return make_integer(value.is_negative() ? -value : value);
}
Result<Value> rounded(Interpreter&, const BigInteger& value, CallArgs& args) {
  static constexpr Signature kSignature{"round", {"ndigits"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const int64_t digits = read.given(0) ? TRY(read.integer(0)) : 0;
  if (digits >= 0) return make_integer(value);
  if (static_cast<size_t>(-digits) > value.bit_length()) return Value(0);
  return make_integer(round_to_power_of_ten(value, static_cast<size_t>(-digits)));
}
Result<Value> formatted(Interpreter& interpreter, const BigInteger& value, CallArgs& args) {
  static constexpr Signature kSignature{"format", {"format_spec"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  FormatSpec spec = TRY(parse_format_spec(TRY(read.text(0)), Value(), args.span));
  if (spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos)
    return Value(format_float(TRY(to_float(interpreter, value, args.span)), spec));
  return Value(TRY(format_integer(value, spec, args.span)));
}
Result<Value> bit_length(Interpreter&, const BigInteger& value, CallArgs&) {
  return Value(static_cast<int64_t>(value.bit_length()));
}
Result<Value> bit_count(Interpreter&, const BigInteger& value, CallArgs&) {
  return Value(static_cast<int64_t>(value.bit_count()));
}
Result<Value> to_bytes(Interpreter& interpreter, const BigInteger& value, CallArgs& args) {
  return integer_to_bytes(interpreter, make_integer(value), args);
}

Result<Value> always(Interpreter&, const BigInteger&, CallArgs&) { return Value(true); }

constexpr std::pair<std::string_view, Conversion> kConversions[] = {
    {"__int__", itself},    {"__index__", itself},    {"__trunc__", itself},     {"__float__", as_float},
    {"__abs__", magnitude}, {"__round__", rounded},   {"__format__", formatted}, {"bit_length", bit_length},
    {"to_bytes", to_bytes}, {"bit_count", bit_count}, {"is_integer", always},
};

}  // namespace

Status check_digits(size_t count, int base, Span span) {
  if (static_cast<double>(count) * std::log2(base) <= static_cast<double>(kMostBits + 64)) return {};
  return make_error(DiagnosticKind::integer_overflow, span,
                    fmt::format("an integer of {} digits has more than {} bits", count, kMostBits));
}

Value make_integer(BigInteger value) {
  if (auto small = value.to_int64()) return Value(*small);
  return std::make_shared<IntObject>(std::move(value));
}

std::optional<BigInteger> integer_of(const Value& value) {
  if (auto index = value.as_index()) return BigInteger(*index);
  if (auto* object = value.get_if<IntObject>()) return object->value;
  return std::nullopt;
}

Result<double> to_float(Interpreter& interpreter, const BigInteger& value, Span span) {
  const double nearest = value.to_double();
  if (std::isfinite(nearest)) return nearest;
  return interpreter.raise("OverflowError", "int too large to convert to float", span);
}

Result<std::optional<Value>> integer_binary(Interpreter& interpreter, BinaryOp op, const BigInteger& a,
                                            const BigInteger& b, Span span) {
  using Maybe = std::optional<Value>;
  switch (op) {
    case BinaryOp::add:
      return Maybe(TRY(limited(a + b, op, span)));
    case BinaryOp::sub:
      return Maybe(TRY(limited(a - b, op, span)));
    case BinaryOp::mul:
      return Maybe(TRY(limited(a * b, op, span)));
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::mod:
      return Maybe(TRY(divide(interpreter, op, a, b, span)));
    case BinaryOp::pow:
      return Maybe(TRY(power(interpreter, a, b, span)));
    case BinaryOp::shl:
    case BinaryOp::shr:
      return Maybe(TRY(shift(op, a, b, span)));
    case BinaryOp::bit_and:
      return Maybe(make_integer(a & b));
    case BinaryOp::bit_or:
      return Maybe(make_integer(a | b));
    case BinaryOp::bit_xor:
      return Maybe(make_integer(a ^ b));
    case BinaryOp::matmul:
      break;
  }
  return Maybe();
}

Result<Value> modular_power(const BigInteger& base, const BigInteger& exponent, const BigInteger& modulus, Span span) {
  if (modulus.is_zero()) return value_error(span, "pow() 3rd argument cannot be 0");
  if (exponent.is_negative()) return value_error(span, "pow() with a modulus needs an exponent that is not negative");
  constexpr size_t kMost = 4096;
  if (exponent.bit_length() > kMost || modulus.bit_length() > kMost) return too_many_bits(BinaryOp::pow, span);
  auto reduced = [&](const BigInteger& value) { return BigInteger::divide(value, modulus).remainder; };
  BigInteger result = reduced(BigInteger(1)), factor = reduced(base);
  for (BigInteger left = exponent; !left.is_zero(); left = left.shifted_right(1)) {
    if (!(left & BigInteger(1)).is_zero()) result = reduced(result * factor);
    factor = reduced(factor * factor);
  }
  return make_integer(std::move(result));
}

Result<std::string> format_integer(const BigInteger& value, const FormatSpec& spec, Span span) {
  if (spec.precision >= 0) return value_error(span, "precision not allowed in integer format specifier");
  if (auto small = value.to_int64(); small && spec.type == 'c') return format_integer(*small, spec, span);
  if (spec.type == 'c') return value_error(span, "%c arg not in range(128)");
  if (spec.type && std::string_view("bdoxXn").find(spec.type) == std::string_view::npos)
    return value_error(span, fmt::format("Unknown format code '{}' for object of type 'int'", spec.type));
  const int base = spec.type == 'b' ? 2 : spec.type == 'o' ? 8 : (spec.type | 0x20) == 'x' ? 16 : 10;
  std::string digits = value.digits(base);
  if (spec.type == 'X')
    std::transform(digits.begin(), digits.end(), digits.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return lay_out_integer(value.is_negative(), std::move(digits), spec);
}

Result<Value> IntObject::get_attribute(Interpreter&, Name name, Span span) {
  std::string_view asked = name.text();
  if (asked == "real" || asked == "numerator") return Value(shared_from_this());
  if (asked == "imag") return Value(0);
  if (asked == "denominator") return Value(1);
  for (const auto& [known, body] : kConversions)
    if (known == asked)
      return make_builtin(name.str(), [self = value, body = body](Interpreter& interpreter, CallArgs& args) {
        return body(interpreter, self, args);
      });
  return no_attribute(kType.name, name, span, {"real", "imag", "bit_length", "bit_count", "is_integer"});
}

Result<std::optional<Value>> IntObject::unary(Interpreter&, UnaryOp op, Span) {
  if (op == UnaryOp::minus) return std::optional<Value>(make_integer(-value));
  if (op == UnaryOp::invert) return std::optional<Value>(make_integer(-value - BigInteger(1)));
  return std::optional<Value>(Value(shared_from_this()));
}

Result<std::optional<Value>> IntObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                               bool reflected, Span span) {
  if (auto integer = integer_of(other)) {
    if (reflected) return integer_binary(interpreter, op, *integer, value, span);
    return integer_binary(interpreter, op, value, *integer, span);
  }
  if (op == BinaryOp::mul && (other.if_string() || sequence_items(other)))
    return interpreter.raise("OverflowError", "cannot fit 'int' into an index-sized integer", span);
  if (!other.if_float() || is_for_integers(op)) return std::optional<Value>();
  const Value self(TRY(to_float(interpreter, value, span)));
  return number_binary(interpreter, op, reflected ? other : self, reflected ? self : other, span);
}

Result<std::optional<Value>> IntObject::compare(Interpreter&, CompareOp op, const Value& other, Span) {
  if (auto integer = integer_of(other)) return std::optional<Value>(Value(holds(op, value.compare(*integer))));
  auto* real = other.if_float();
  if (!real) return std::optional<Value>();
  auto order = compare_with_float(value, *real);
  return std::optional<Value>(Value(order ? holds(op, *order) : op == CompareOp::ne));
}

Result<size_t> IntObject::hash(Interpreter&, Span) {
  // A float that is equal has the same hash.
  const double nearest = value.to_double();
  if (std::isfinite(nearest) && BigInteger::truncate(nearest) == value) return std::hash<double>()(nearest);
  return std::hash<std::string>()(value.to_text());
}

}  // namespace tilepilot::stage
