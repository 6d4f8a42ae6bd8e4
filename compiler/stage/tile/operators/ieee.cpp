// Arithmetic that says how it rounds. Here all arithmetic rounds to nearest, ties to even: the one mode that is taken.
#include <fmt/format.h>

#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

Status check_mode(const TileArguments& arguments, size_t at) {
  std::string mode = arguments.has(at) ? TRY(arguments.text(at)) : "rn";
  if (mode == "rn") return {};
  if (mode == "rz" || mode == "ru" || mode == "rd")
    return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(at),
                      fmt::format("`{}` cannot round by `{}`", arguments.function(), mode),
                      "arithmetic rounds to the nearest number: `rn`");
  return make_error(DiagnosticKind::value_error, arguments.span(at),
                    fmt::format("`{}` knows no rounding mode `{}`", arguments.function(), mode),
                    "it is rn, rz, ru or rd");
}

template <BinaryOp op>
Result<Value> of_two(TileArguments& arguments) {
  TRY(check_mode(arguments, 2));
  return apply_binary(arguments.context(), op, arguments[0], arguments[1], arguments.span());
}

Result<Value> rounded_reciprocal(TileArguments& arguments) {
  TRY(check_mode(arguments, 1));
  return apply_binary(arguments.context(), BinaryOp::div, Value(1.0), arguments[0], arguments.span());
}

Result<Value> root(TileArguments& arguments, ir::MathFn function) {
  ir::Expr x = TRY(to_expr(arguments[0], arguments.span(0)));
  if (!x->type.is_float()) x = fold_cast(std::move(x), ir::kFloat32, arguments.span());
  Value result = make_expr(arguments.context(), ir::math(function, std::move(x), arguments.span()));
  return nest(std::move(result), {&arguments[0]}, arguments.span());
}
Result<Value> square_root(TileArguments& arguments) {
  TRY(check_mode(arguments, 1));
  return root(arguments, ir::MathFn::sqrt);
}
Result<Value> inverse_root(TileArguments& arguments) { return root(arguments, ir::MathFn::rsqrt); }

// In float64, where products of float32 are exact.
Result<Value> multiply_add(TileArguments& arguments) {
  TRY(check_mode(arguments, 3));
  Span span = arguments.span();
  std::vector<ir::Expr> wide;
  for (size_t i = 0; i < 3; ++i) {
    ir::Expr x = TRY(to_expr(arguments[i], arguments.span(i), ir::kFloat32));
    if (x->type != ir::kFloat32)
      return make_error(DiagnosticKind::dtype_mismatch, arguments.span(i),
                        fmt::format("`T.ieee_fmaf` takes float32, not {}", ir::to_string(x->type)));
    wide.push_back(fold_cast(std::move(x), ir::kFloat64, span));
  }
  ir::Expr product = ir::binary(ir::BinaryOp::mul, wide[0], wide[1], span);
  ir::Expr sum = ir::binary(ir::BinaryOp::add, std::move(product), wide[2], span);
  return nest(make_expr(arguments.context(), ir::cast(std::move(sum), ir::kFloat32, span)),
              {&arguments[0], &arguments[1], &arguments[2]}, span);
}

}  // namespace

const std::vector<TileFunction>& ieee_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"ieee_add", "x, y, rounding_mode=", "x + y", of_two<BinaryOp::add>},
      {"ieee_sub", "x, y, rounding_mode=", "x - y", of_two<BinaryOp::sub>},
      {"ieee_mul", "x, y, rounding_mode=", "x * y", of_two<BinaryOp::mul>},
      {"ieee_fdiv", "x, y, rounding_mode=", "x / y", of_two<BinaryOp::div>},
      {"ieee_fmaf", "x, y, z, rounding_mode=", "x * y + z of float32, by way of float64", multiply_add},
      {"ieee_frcp", "x, rounding_mode=", "1 / x", rounded_reciprocal},
      {"ieee_fsqrt", "x, rounding_mode=", "square root", square_root},
      {"ieee_frsqrt", "x", "1 / sqrt(x)", inverse_root},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
