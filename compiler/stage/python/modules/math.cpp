// The module `math`.
#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

Error domain_error(Span span) { return value_error(span, "math domain error"); }

struct RealFunction {
  std::string_view name;
  double (*compute)(double);
};

constexpr RealFunction kRealFunctions[] = {
    {"sqrt", std::sqrt},
    {"exp", std::exp},
    {"expm1", std::expm1},
    {"log1p", std::log1p},
    {"sin", std::sin},
    {"cos", std::cos},
    {"tan", std::tan},
    {"asin", std::asin},
    {"acos", std::acos},
    {"atan", std::atan},
    {"sinh", std::sinh},
    {"cosh", std::cosh},
    {"tanh", std::tanh},
    {"asinh", std::asinh},
    {"acosh", std::acosh},
    {"atanh", std::atanh},
    {"erf", std::erf},
    {"erfc", std::erfc},
    {"gamma", std::tgamma},
    {"lgamma", std::lgamma},
    {"fabs", std::fabs},
    {"exp2", std::exp2},
    {"cbrt", std::cbrt},
    {"degrees", [](double x) { return x * (180.0 / std::numbers::pi); }},
    {"radians", [](double x) { return x * (std::numbers::pi / 180.0); }},
};

// Python's rule: a NaN from a number is a domain error, an infinity from a finite number an overflow.
Result<Value> checked(Interpreter& interpreter, double result, bool from_nan, bool from_infinity, Span span) {
  if (std::isnan(result) && !from_nan) return domain_error(span);
  if (std::isinf(result) && !from_infinity) return interpreter.raise("OverflowError", "math range error", span);
  return Value(result);
}

// A number: int, float, bool, or an object with `__float__`.
Result<double> real(Interpreter& interpreter, const Value& value, Span span) {
  if (auto number = value.as_number()) return *number;
  if (auto converted = TRY(try_conversion(interpreter, value, "__float__", span))) {
    if (auto number = converted->as_number()) return *number;
  }
  return type_error(span, fmt::format("must be real number, not {}", value.type_name()));
}

BuiltinFunction::Body real_function(const RealFunction& function) {
  return [&function](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    if (args.positional.size() != 1 || !args.keywords.empty()) {
      return make_error(
          DiagnosticKind::wrong_arguments, args.span,
          fmt::format("math.{}() takes exactly one argument ({} given)", function.name, args.positional.size()));
    }
    double x = TRY(real(interpreter, args.positional[0], args.span));
    double result = function.compute(x);
    bool pole = function.compute == static_cast<double (*)(double)>(std::atanh) && std::fabs(x) == 1;
    if (pole) return domain_error(args.span);
    return checked(interpreter, result, std::isnan(x), std::isinf(x), args.span);
  };
}

Result<Value> log(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"log", {"x", "base"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  double x = TRY(real(interpreter, *read[0], args.span));
  if (x <= 0) return domain_error(args.span);
  if (!read[1]) return Value(std::log(x));
  double base = TRY(real(interpreter, *read[1], args.span));
  if (base <= 0) return domain_error(args.span);
  double divisor = std::log(base);
  if (divisor == 0) return division_by_zero(args.span, "float division by zero");
  return Value(std::log(x) / divisor);
}

template <double (*compute)(double)>
Result<Value> log_of(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"log", {"x"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  double x = TRY(real(interpreter, *read[0], args.span));
  return x <= 0 ? Result<Value>(domain_error(args.span)) : Result<Value>(compute(x));
}

template <double (*compute)(double)>
Result<Value> to_integer(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"floor", {"x"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (auto index = read[0]->as_index()) return Value(*index);
  double x = TRY(real(interpreter, *read[0], args.span));
  return integer_from(interpreter, compute(x), args.span);
}

template <double (*compute)(double, double)>
Result<Value> of_two(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"pow", {"x", "y"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  double x = TRY(real(interpreter, *read[0], args.span)), y = TRY(real(interpreter, *read[1], args.span));
  bool infinite = std::isinf(x) || std::isinf(y);
  double result = compute(x, y);
  if (std::isinf(result) && !infinite && x == 0) return domain_error(args.span);
  return checked(interpreter, result, std::isnan(x) || std::isnan(y), infinite, args.span);
}

template <bool (*test)(double)>
Result<Value> is(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"isnan", {"x"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Value(test(TRY(real(interpreter, *read[0], args.span))));
}

bool is_nan(double x) { return std::isnan(x); }
bool is_infinite(double x) { return std::isinf(x); }
bool is_finite(double x) { return std::isfinite(x); }

Error not_an_integer(const Value& value, Span span) {
  return type_error(span, fmt::format("'{}' object cannot be interpreted as an integer", value.type_name()));
}

Result<std::vector<BigInteger>> any_integers(CallArgs& args) {
  std::vector<BigInteger> values;
  for (const Value& each : args.positional) {
    auto integer = integer_of(each);
    if (!integer) return not_an_integer(each, args.span);
    values.push_back(integer->is_negative() ? -*integer : *std::move(integer));
  }
  return values;
}

Result<std::vector<int64_t>> integers(CallArgs& args) {
  std::vector<int64_t> values;
  for (const Value& each : args.positional) {
    auto index = each.as_index();
    if (!index && each.get_if<IntObject>()) return integer_overflow(args.span, "math");
    if (!index) return not_an_integer(each, args.span);
    values.push_back(*index);
  }
  return values;
}

BigInteger common_divisor(BigInteger a, BigInteger b) {
  while (!b.is_zero()) a = std::exchange(b, BigInteger::divide(a, b).remainder);
  return a;
}

Result<Value> gcd(Interpreter&, CallArgs& args) {
  BigInteger result;
  for (const BigInteger& each : TRY(any_integers(args))) result = common_divisor(std::move(result), each);
  return make_integer(std::move(result));
}

Result<Value> lcm(Interpreter&, CallArgs& args) {
  BigInteger result(1);
  for (const BigInteger& each : TRY(any_integers(args))) {
    if (each.is_zero()) return Value(0);
    result = BigInteger::divide(result, common_divisor(result, each)).quotient * each;
  }
  return make_integer(std::move(result));
}

Result<Value> factorial(Interpreter& interpreter, CallArgs& args) {
  std::vector<int64_t> values = TRY(integers(args));
  if (values.size() != 1) return type_error(args.span, "factorial() takes exactly one argument");
  if (values[0] < 0) return value_error(args.span, "factorial() not defined for negative values");
  Value result(1);
  for (int64_t i = 2; i <= values[0]; ++i) result = TRY(interpreter.binary(BinaryOp::mul, result, Value(i), args.span));
  return result;
}

Result<Value> combinations(Interpreter& interpreter, CallArgs& args) {
  std::vector<int64_t> values = TRY(integers(args));
  if (values.size() != 2) return type_error(args.span, "comb() takes exactly two arguments");
  int64_t n = values[0], k = values[1];
  if (n < 0 || k < 0) return value_error(args.span, "n and k must be non-negative integers");
  if (k > n) return Value(0);
  k = std::min(k, n - k);
  Value result(1);
  for (int64_t i = 1; i <= k; ++i) {
    result = TRY(interpreter.binary(BinaryOp::mul, result, Value(n - k + i), args.span));
    result = TRY(interpreter.binary(BinaryOp::floor_div, result, Value(i), args.span));
  }
  return result;
}

// Newton's steps from above.
Result<Value> isqrt(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"isqrt", {"n"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto number = integer_of(*read[0]);
  if (!number) return not_an_integer(*read[0], args.span);
  if (number->is_negative()) return value_error(args.span, "isqrt() argument must be nonnegative");
  if (number->is_zero()) return Value(0);
  BigInteger root = BigInteger(1).shifted_left(number->bit_length() / 2 + 1);
  for (;;) {
    BigInteger next = (root + BigInteger::divide(*number, root).quotient).shifted_right(1);
    if (next.compare(root) >= 0) return make_integer(std::move(root));
    root = std::move(next);
  }
}

Result<Value> prod(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"prod", {"iterable", "start"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Value total = read[1] ? *read[1] : Value(1);
  for (const Value& each : TRY(interpreter.to_vector(*read[0], args.span))) {
    total = TRY(interpreter.binary(BinaryOp::mul, total, each, args.span));
  }
  return total;
}

Result<Value> hypot(Interpreter& interpreter, CallArgs& args) {
  double result = 0;
  for (const Value& each : args.positional) result = std::hypot(result, TRY(real(interpreter, each, args.span)));
  return Value(result);
}

Result<Value> isclose(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"isclose", {"a", "b", "rel_tol", "abs_tol"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  double a = TRY(real(interpreter, *read[0], args.span)), b = TRY(real(interpreter, *read[1], args.span));
  double relative = TRY(read.number(2, 1e-9)), absolute = TRY(read.number(3, 0.0));
  if (a == b) return Value(true);
  if (std::isinf(a) || std::isinf(b)) return Value(false);
  return Value(std::fabs(a - b) <= std::max(relative * std::max(std::fabs(a), std::fabs(b)), absolute));
}

// Python rounds `fsum` once; a long double accumulator is not enough for that, an exact list of partials is.
Result<Value> exact_sum(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"fsum", {"seq"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<double> partials;
  for (const Value& each : TRY(interpreter.to_vector(*read[0], args.span))) {
    double x = TRY(real(interpreter, each, args.span));
    size_t kept = 0;
    for (double y : std::vector<double>(partials)) {
      if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
      double high = x + y, low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  double total = 0;
  for (double each : partials) total += each;
  return Value(total);
}

Result<Value> split_fraction(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"modf", {"x"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  double whole = 0;
  double fraction = std::modf(TRY(real(interpreter, *read[0], args.span)), &whole);
  return make_tuple({Value(fraction), Value(whole)});
}

Result<Value> split_exponent(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"frexp", {"x"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  int exponent = 0;
  double mantissa = std::frexp(TRY(real(interpreter, *read[0], args.span)), &exponent);
  return make_tuple({Value(mantissa), Value(exponent)});
}

double copy_sign(double x, double y) { return std::copysign(x, y); }
double remainder(double x, double y) { return std::remainder(x, y); }
double modulo(double x, double y) { return std::fmod(x, y); }
double power(double x, double y) { return std::pow(x, y); }
double angle(double y, double x) { return std::atan2(y, x); }
double round_down(double x) { return std::floor(x); }
double round_up(double x) { return std::ceil(x); }
double cut(double x) { return std::trunc(x); }
double log_base_2(double x) { return std::log2(x); }
double log_base_10(double x) { return std::log10(x); }

constexpr std::pair<std::string_view, Result<Value> (*)(Interpreter&, CallArgs&)> kMathFunctions[] = {
    {"log", log},
    {"log2", log_of<log_base_2>},
    {"log10", log_of<log_base_10>},
    {"floor", to_integer<round_down>},
    {"ceil", to_integer<round_up>},
    {"trunc", to_integer<cut>},
    {"pow", of_two<power>},
    {"fmod", of_two<modulo>},
    {"atan2", of_two<angle>},
    {"copysign", of_two<copy_sign>},
    {"remainder", of_two<remainder>},
    {"isnan", is<is_nan>},
    {"isinf", is<is_infinite>},
    {"isfinite", is<is_finite>},
    {"gcd", gcd},
    {"lcm", lcm},
    {"factorial", factorial},
    {"comb", combinations},
    {"isqrt", isqrt},
    {"prod", prod},
    {"hypot", hypot},
    {"isclose", isclose},
    {"fsum", exact_sum},
    {"modf", split_fraction},
    {"frexp", split_exponent},
};

}  // namespace

void fill_math(Interpreter&, ModuleObject& module) {
  module.set("pi", Value(std::numbers::pi));
  module.set("e", Value(std::numbers::e));
  module.set("tau", Value(2 * std::numbers::pi));
  module.set("inf", Value(std::numeric_limits<double>::infinity()));
  module.set("nan", Value(std::numeric_limits<double>::quiet_NaN()));
  for (const RealFunction& each : kRealFunctions) module.function(each.name, real_function(each));
  for (const auto& [name, body] : kMathFunctions) module.function(name, body);
}

}  // namespace tilepilot::stage
