#include "compiler/stage/tile/operators/extern_maths.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// What the parameters of the C function are: float, or the type of the result, as C++'s overloads take them.
enum class Takes : uint8_t { floats, result_type, own_types };

struct Row {
  std::string_view c_name;
  std::string_view name;  // of the function of `T.`
  Takes takes = Takes::floats;
  std::string_view mode = {};  // an argument more
};

constexpr Row kRows[] = {
    {"expf", "exp"},
    {"exp2f", "exp2"},
    {"exp10f", "exp10"},
    {"logf", "log"},
    {"log2f", "log2"},
    {"log10f", "log10"},
    {"log1pf", "log1p"},
    {"sqrtf", "sqrt"},
    {"rsqrtf", "rsqrt"},
    {"sinf", "sin"},
    {"cosf", "cos"},
    {"tanf", "tan"},
    {"sinhf", "sinh"},
    {"coshf", "cosh"},
    {"tanhf", "tanh"},
    {"asinf", "asin"},
    {"acosf", "acos"},
    {"atanf", "atan"},
    {"asinhf", "asinh"},
    {"acoshf", "acosh"},
    {"atanhf", "atanh"},
    {"atan2f", "atan2"},
    {"hypotf", "hypot"},
    {"erff", "erf"},
    {"fabsf", "fabs"},
    {"floorf", "floor"},
    {"ceilf", "ceil"},
    {"truncf", "trunc"},
    {"rintf", "nearbyint"},
    {"nearbyintf", "nearbyint"},
    {"roundf", "round", Takes::floats, "ties-away-from-zero"},
    {"powf", "pow"},
    {"fmodf", "fmod"},
    {"fmaf", "ieee_fmaf"},
    {"__fmaf_rn", "ieee_fmaf"},
    {"__expf", "exp"},
    {"__exp10f", "exp10"},
    {"__logf", "log"},
    {"__log2f", "log2"},
    {"__log10f", "log10"},
    {"__sinf", "sin"},
    {"__cosf", "cos"},
    {"__tanf", "tan"},
    {"__powf", "pow"},
    {"__frcp_rn", "fast_rcp"},
    {"__fsqrt_rn", "sqrt"},
    {"__frsqrt_rn", "rsqrt"},
    {"exp", "exp", Takes::result_type},
    {"exp2", "exp2", Takes::result_type},
    {"log", "log", Takes::result_type},
    {"log2", "log2", Takes::result_type},
    {"log10", "log10", Takes::result_type},
    {"log1p", "log1p", Takes::result_type},
    {"sqrt", "sqrt", Takes::result_type},
    {"rsqrt", "rsqrt", Takes::result_type},
    {"sin", "sin", Takes::result_type},
    {"cos", "cos", Takes::result_type},
    {"tan", "tan", Takes::result_type},
    {"tanh", "tanh", Takes::result_type},
    {"erf", "erf", Takes::result_type},
    {"fabs", "fabs", Takes::result_type},
    {"floor", "floor", Takes::result_type},
    {"ceil", "ceil", Takes::result_type},
    {"trunc", "trunc", Takes::result_type},
    {"rint", "nearbyint", Takes::result_type},
    {"round", "round", Takes::result_type, "ties-away-from-zero"},
    {"pow", "pow", Takes::result_type},
    {"fmod", "fmod", Takes::result_type},
    {"abs", "abs", Takes::own_types},
    {"max", "max", Takes::own_types},
    {"min", "min", Takes::own_types},
    {"__popc", "popcount", Takes::own_types},
    {"__popcll", "popcount", Takes::own_types},
    {"__clz", "clz", Takes::own_types},
    {"__clzll", "clz", Takes::own_types},
};

const TileFunction& function_of(std::string_view name) {
  const auto is_it = [&](const TileFunction& each) { return each.name == name; };
  for (const auto* table : {&maths_functions(), &ieee_functions(), &integer_functions()})
    if (const auto found = std::find_if(table->begin(), table->end(), is_it); found != table->end()) return *found;
  return *std::find_if(warp_functions().begin(), warp_functions().end(), is_it);
}

Result<Value> call_row(TileContext& context, const Row& row, CallArgs args) {
  if (!row.mode.empty()) args.keywords.emplace_back(Name("rounding_mode"), Value(row.mode));
  const TileFunction& function = function_of(row.name);
  const TileSignature signature(function.parameters);
  TileArguments arguments = TRY(TileArguments::match(context, row.c_name, signature, args));
  return function.handler(arguments);
}

// C's fmax and fmin: of a number and a NaN, the number.
Result<Value> extremum(TileContext& context, ir::BinaryOp op, const CallArgs& args) {
  const Span span = args.span;
  const ir::Expr a = TRY(to_expr(args.positional[0], span)), b = TRY(to_expr(args.positional[1], span));
  ir::Expr of_numbers = ir::binary(op, a, b, span);
  Value result = make_expr(context, fold_select(ir::math(ir::MathFn::isnan, b, span), a, std::move(of_numbers), span));
  const Value &left = args.positional[0], &right = args.positional[1];
  return nest(std::move(result), {&left, &left, &right, &right}, span);
}

Result<Value> quotient(TileContext& context, const CallArgs& args) {
  return apply_binary(context, BinaryOp::div, args.positional[0], args.positional[1], args.span);
}

Result<Value> saturated(TileContext& context, const CallArgs& args) {
  const Value low = TRY(apply_matched(context, ir::BinaryOp::max, args.positional[0], Value(0.0), args.span));
  return apply_matched(context, ir::BinaryOp::min, low, Value(1.0), args.span);
}

// The conversion is to the type that the call says it gives.
Result<Value> converted(TileContext&, const CallArgs& args) { return args.positional[0]; }

// The nearest float16, or the one before it where that is farther from 0 than the number.
Result<Value> towards_zero(TileContext& context, const CallArgs& args) {
  const Span span = args.span;
  const ir::Expr x = TRY(to_expr(args.positional[0], span)), nearest = ir::cast(x, ir::kFloat16, span);
  const auto size = [&](const ir::Expr& e) { return ir::math(ir::MathFn::abs, e, span); };
  const ir::Expr farther = ir::binary(ir::BinaryOp::gt, size(ir::cast(nearest, ir::kFloat32, span)), size(x), span);
  const ir::Expr bits = ir::reinterpret(nearest, ir::kUInt16, span), one = ir::int_imm(1, ir::kUInt16, span);
  const ir::Expr before = ir::reinterpret(ir::binary(ir::BinaryOp::sub, bits, one, span), ir::kFloat16, span);
  return make_expr(context, fold_select(farther, before, nearest, span));
}

// CUDA's arguments are the other way round.
Result<Value> match_any(TileContext& context, const CallArgs& args) {
  return call_row(context, {"__match_any_sync", "match_any_sync", Takes::own_types},
                  CallArgs{{args.positional[1], args.positional[0]}, {}, args.span, {}});
}

struct Special {
  std::string_view c_name;
  size_t parameters;
  Takes takes;
  Result<Value> (*body)(TileContext&, const CallArgs&);
};

Result<Value> larger(TileContext& context, const CallArgs& args) { return extremum(context, ir::BinaryOp::max, args); }
Result<Value> smaller(TileContext& context, const CallArgs& args) { return extremum(context, ir::BinaryOp::min, args); }

constexpr Special kSpecials[] = {
    {"fmaxf", 2, Takes::floats, larger},
    {"fminf", 2, Takes::floats, smaller},
    {"fmax", 2, Takes::result_type, larger},
    {"fmin", 2, Takes::result_type, smaller},
    {"__fdividef", 2, Takes::floats, quotient},
    {"fdividef", 2, Takes::floats, quotient},
    {"__fdiv_rn", 2, Takes::floats, quotient},
    {"__saturatef", 1, Takes::floats, saturated},
    {"__float2half_rz", 1, Takes::floats, towards_zero},
    {"__float2half", 1, Takes::floats, converted},
    {"__float2half_rn", 1, Takes::floats, converted},
    {"__half2float", 1, Takes::own_types, converted},
    {"__float2bfloat16", 1, Takes::floats, converted},
    {"__float2bfloat16_rn", 1, Takes::floats, converted},
    {"__bfloat162float", 1, Takes::own_types, converted},
    {"__match_any_sync", 2, Takes::own_types, match_any},
};

Status convert_arguments(TileContext& context, Takes takes, ir::DType result, CallArgs& args) {
  if (takes == Takes::own_types) return {};
  const bool in_result = takes == Takes::result_type && result.is_float() && !result.is_small_float();
  const ir::DType type = in_result ? result : ir::kFloat32;
  for (Value& each : args.positional) each = TRY(convert(context, each, type, args.span));
  return {};
}

template <class Table>
const auto* row_of(const Table& table, std::string_view c_name) {
  const auto found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.c_name == c_name; });
  return found == std::end(table) ? nullptr : &*found;
}

}  // namespace

Result<std::optional<Value>> call_extern_maths(TileContext& context, ExternMathsCall call) {
  const Row* row = row_of(kRows, call.function);
  const Special* special = row_of(kSpecials, call.function);
  if (!row && !special) return std::optional<Value>();
  CallArgs args{std::move(call.arguments), {}, call.span, {}};
  TRY(convert_arguments(context, row ? row->takes : special->takes, call.result, args));
  if (special && args.positional.size() != special->parameters)
    return make_error(DiagnosticKind::wrong_arguments, call.span,
                      fmt::format("`{}` takes {} argument{}, got {}", call.function, special->parameters,
                                  special->parameters == 1 ? "" : "s", args.positional.size()));
  const Value value = TRY(row ? call_row(context, *row, std::move(args)) : special->body(context, args));
  return std::optional<Value>(TRY(convert(context, value, call.result, call.span)));
}

}  // namespace tilepilot::stage
