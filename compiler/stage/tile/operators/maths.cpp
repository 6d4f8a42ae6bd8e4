// Element-wise maths: one row a function.
#include <fmt/format.h>

#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

using ir::MathFn;

// Functions of reals take integers as float32; `abs` keeps the type.
template <MathFn function>
Result<Value> elementwise(TileArguments& arguments) {
  ir::Expr argument = TRY(to_expr(arguments[0], arguments.span(0)));
  bool keeps_integers = function == MathFn::abs && argument->type.is_int();
  if (!argument->type.is_float() && !keeps_integers)
    argument = fold_cast(std::move(argument), function == MathFn::abs ? ir::kInt32 : ir::kFloat32, arguments.span());
  Value result = make_expr(arguments.context(), ir::math(function, std::move(argument), arguments.span()));
  return nest(std::move(result), {&arguments[0]}, arguments.span());
}

Result<Value> absolute(TileArguments& arguments) {
  if (auto* integer = arguments[0].if_int()) return Value(*integer < 0 ? -*integer : *integer);
  return elementwise<MathFn::abs>(arguments);
}

// min and max of two numbers; of two compile-time numbers a compile-time number.
Result<Value> extremum(TileArguments& arguments, ir::BinaryOp op) {
  const Value &left = arguments[0], &right = arguments[1];
  auto a = left.as_number(), b = right.as_number();
  if (a && b) return (op == ir::BinaryOp::max) == (*a < *b) ? right : left;
  return apply_matched(arguments.context(), op, left, right, arguments.span());
}
Result<Value> maximum(TileArguments& arguments) { return extremum(arguments, ir::BinaryOp::max); }
Result<Value> minimum(TileArguments& arguments) { return extremum(arguments, ir::BinaryOp::min); }

Result<Value> clamp(TileArguments& arguments) {
  TileContext& context = arguments.context();
  Value low = TRY(apply_matched(context, ir::BinaryOp::max, arguments[0], arguments[1], arguments.span()));
  return apply_matched(context, ir::BinaryOp::min, low, arguments[2], arguments.span());
}

Result<Value> power(TileArguments& arguments) {
  return apply_binary(arguments.context(), BinaryOp::pow, arguments[0], arguments[1], arguments.span());
}

// Compile-time numbers stay with Python; anything else becomes an expression.
template <BinaryOp op>
Result<Value> arithmetic(TileArguments& arguments) {
  if (!is_tile_value(arguments[0]) && !is_tile_value(arguments[1]))
    return arguments.context().interpreter.binary(op, arguments[0], arguments[1], arguments.span());
  return apply_binary(arguments.context(), op, arguments[0], arguments[1], arguments.span());
}

// The whole part, and one more away from 0 where the rest is a half or more.
Result<Value> round_away_from_zero(TileArguments& arguments) {
  Span span = arguments.span();
  ir::Expr x = TRY(to_expr(arguments[0], arguments.span(0)));
  if (!x->type.is_float()) x = fold_cast(std::move(x), ir::kFloat32, span);
  ir::Expr whole = ir::math(MathFn::trunc, x, span);
  ir::Expr rest = ir::math(MathFn::abs, ir::binary(ir::BinaryOp::sub, x, whole, span), span);
  ir::Expr up = ir::binary(ir::BinaryOp::ge, std::move(rest), ir::float_imm(0.5, x->type, span), span);
  ir::Expr negative = ir::binary(ir::BinaryOp::lt, x, ir::float_imm(0, x->type, span), span);
  ir::Expr step =
      ir::select(std::move(negative), ir::float_imm(-1, x->type, span), ir::float_imm(1, x->type, span), span);
  ir::Expr moved = ir::binary(ir::BinaryOp::add, whole, std::move(step), span);
  Value result = make_expr(arguments.context(), ir::select(std::move(up), std::move(moved), whole, span));
  const Value& given = arguments[0];
  return nest(std::move(result), {&given, &given, &given, &given, &given}, span);
}

Result<Value> round(TileArguments& arguments) {
  std::string mode = arguments.has(1) ? TRY(arguments.text(1)) : "ties-to-even";
  if (mode == "ties-to-even") return elementwise<MathFn::round>(arguments);
  if (mode == "ties-away-from-zero") return round_away_from_zero(arguments);
  return make_error(DiagnosticKind::value_error, arguments.span(1), fmt::format("`T.round` knows no mode `{}`", mode),
                    "it is ties-to-even or ties-away-from-zero");
}

// Functions of two reals take integers as float32.
Result<Operands> real_operands(const TileArguments& arguments) {
  Operands both = TRY(matched_operands(arguments[0], arguments[1], arguments.span()));
  if (both.left->type.is_float()) return both;
  return Operands{fold_cast(both.left, ir::kFloat32, arguments.span()),
                  fold_cast(both.right, ir::kFloat32, arguments.span())};
}

Result<Value> of_operands(const TileArguments& arguments, ir::BinaryOp op, Operands both) {
  Value result = make_expr(arguments.context(), ir::binary(op, both.left, both.right, arguments.span()));
  return nest(std::move(result), {&arguments[0], &arguments[1]}, arguments.span());
}

template <ir::BinaryOp op>
Result<Value> of_two(TileArguments& arguments) {
  return of_operands(arguments, op, TRY(real_operands(arguments)));
}

Result<Value> fmod(TileArguments& arguments) {
  Operands both = TRY(matched_operands(arguments[0], arguments[1], arguments.span()));
  if (!both.left->type.is_float())
    return make_error(DiagnosticKind::type_error, arguments.span(), "`T.fmod` needs floating-point operands",
                      "use `%` or `T.floormod` for integers");
  return of_operands(arguments, ir::BinaryOp::fmod, std::move(both));
}

Result<Value> nextafter(TileArguments& arguments) {
  Operands both = TRY(real_operands(arguments));
  if (both.left->type.is_small_float())
    return make_error(DiagnosticKind::dtype_mismatch, arguments.span(),
                      fmt::format("`T.nextafter` has no steps of {}", ir::to_string(both.left->type)),
                      "it takes float32 and float64");
  return of_operands(arguments, ir::BinaryOp::nextafter, std::move(both));
}

// x * 2^n: the exponent, an integer, in the type of x.
Result<Value> ldexp(TileArguments& arguments) {
  Span span = arguments.span();
  ir::Expr x = TRY(to_expr(arguments[0], arguments.span(0)));
  ir::Expr n = TRY(to_index(arguments[1], "the exponent of `T.ldexp`", arguments.span(1)));
  if (!x->type.is_float()) x = fold_cast(std::move(x), ir::kFloat32, span);
  n = fold_cast(std::move(n), x->type, span);
  return of_operands(arguments, ir::BinaryOp::ldexp, {std::move(x), std::move(n)});
}

Result<Value> reciprocal(TileArguments& arguments) {
  return apply_binary(arguments.context(), BinaryOp::div, Value(1.0), arguments[0], arguments.span());
}

}  // namespace

const std::vector<TileFunction>& maths_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"exp", "x", "e to the power of x", elementwise<MathFn::exp>},
      {"exp2", "x", "2 to the power of x", elementwise<MathFn::exp2>},
      {"exp10", "x", "10 to the power of x", elementwise<MathFn::exp10>},
      {"log", "x", "natural logarithm", elementwise<MathFn::log>},
      {"log2", "x", "logarithm to base 2", elementwise<MathFn::log2>},
      {"log10", "x", "logarithm to base 10", elementwise<MathFn::log10>},
      {"log1p", "x", "log(1 + x), accurate near 0", elementwise<MathFn::log1p>},
      {"sqrt", "x", "square root", elementwise<MathFn::sqrt>},
      {"rsqrt", "x", "1 / sqrt(x)", elementwise<MathFn::rsqrt>},
      {"sin", "x", "sine", elementwise<MathFn::sin>},
      {"cos", "x", "cosine", elementwise<MathFn::cos>},
      {"tan", "x", "tangent", elementwise<MathFn::tan>},
      {"sinh", "x", "hyperbolic sine", elementwise<MathFn::sinh>},
      {"cosh", "x", "hyperbolic cosine", elementwise<MathFn::cosh>},
      {"tanh", "x", "hyperbolic tangent", elementwise<MathFn::tanh>},
      {"asin", "x", "inverse sine", elementwise<MathFn::asin>},
      {"acos", "x", "inverse cosine", elementwise<MathFn::acos>},
      {"atan", "x", "inverse tangent", elementwise<MathFn::atan>},
      {"asinh", "x", "inverse hyperbolic sine", elementwise<MathFn::asinh>},
      {"acosh", "x", "inverse hyperbolic cosine", elementwise<MathFn::acosh>},
      {"atanh", "x", "inverse hyperbolic tangent", elementwise<MathFn::atanh>},
      {"atan2", "y, x", "the angle of the point (x, y)", of_two<ir::BinaryOp::atan2>},
      {"hypot", "x, y", "sqrt(x * x + y * y) without overflow on the way", of_two<ir::BinaryOp::hypot>},
      {"ldexp", "x, n", "x * 2^n for an integer n, rounded once", ldexp},
      {"nextafter", "x, y", "the next float32 or float64 after x towards y", nextafter},
      {"fast_rcp", "x", "1 / x where speed matters more than the last digit; on a CPU the same as `1 / x`", reciprocal},
      {"erf", "x", "error function", elementwise<MathFn::erf>},
      {"sigmoid", "x", "1 / (1 + exp(-x))", elementwise<MathFn::sigmoid>},
      {"abs", "x", "absolute value", absolute},
      {"fabs", "x", "absolute value", absolute},
      {"floor", "x", "the next whole number below", elementwise<MathFn::floor>},
      {"ceil", "x", "the next whole number above", elementwise<MathFn::ceil>},
      {"round", "x, rounding_mode=", "the nearest whole number, ties to even or, by `rounding_mode`, away from 0",
       round},
      {"nearbyint", "x", "the nearest whole number, ties to even", elementwise<MathFn::round>},
      {"trunc", "x", "the whole number towards 0", elementwise<MathFn::trunc>},
      {"isnan", "x", "whether x is not a number", elementwise<MathFn::isnan>},
      {"isinf", "x", "whether x is infinite", elementwise<MathFn::isinf>},
      {"isfinite", "x", "whether x is neither infinite nor not a number", elementwise<MathFn::isfinite>},
      {"__exp", "x", "`T.exp` where speed matters more than the last digit; on a CPU the same as `T.exp`",
       elementwise<MathFn::exp>},
      {"__exp10", "x", "`T.exp10` where speed matters more than the last digit; on a CPU the same as `T.exp10`",
       elementwise<MathFn::exp10>},
      {"__log", "x", "`T.log` where speed matters more than the last digit; on a CPU the same as `T.log`",
       elementwise<MathFn::log>},
      {"__log2", "x", "`T.log2` where speed matters more than the last digit; on a CPU the same as `T.log2`",
       elementwise<MathFn::log2>},
      {"__log10", "x", "`T.log10` where speed matters more than the last digit; on a CPU the same as `T.log10`",
       elementwise<MathFn::log10>},
      {"__sin", "x", "`T.sin` where speed matters more than the last digit; on a CPU the same as `T.sin`",
       elementwise<MathFn::sin>},
      {"__cos", "x", "`T.cos` where speed matters more than the last digit; on a CPU the same as `T.cos`",
       elementwise<MathFn::cos>},
      {"__tan", "x", "`T.tan` where speed matters more than the last digit; on a CPU the same as `T.tan`",
       elementwise<MathFn::tan>},
      {"max", "a, b", "the larger of two numbers", maximum},
      {"min", "a, b", "the smaller of two numbers", minimum},
      {"clamp", "x, min_val, max_val", "x limited to an interval", clamp},
      {"pow", "x, y", "x to the power of y", power},
      {"power", "x, y", "x to the power of y", power},
      {"fmod", "x, y", "the exact remainder of a division, with the sign of x", fmod},
      {"floordiv", "a, b", "a // b", arithmetic<BinaryOp::floor_div>},
      {"floormod", "a, b", "a % b", arithmetic<BinaryOp::mod>},
      {"shift_left", "x, y", "x << y", arithmetic<BinaryOp::shl>},
      {"shift_right", "x, y", "x >> y", arithmetic<BinaryOp::shr>},
      {"bitwise_and", "x, y", "x & y", arithmetic<BinaryOp::bit_and>},
      {"bitwise_or", "x, y", "x | y", arithmetic<BinaryOp::bit_or>},
      {"bitwise_xor", "x, y", "x ^ y", arithmetic<BinaryOp::bit_xor>},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
