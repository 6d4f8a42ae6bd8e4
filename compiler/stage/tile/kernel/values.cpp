// Functions of values that are not arithmetic: casts, selections, the limits of types.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// How a conversion may be asked to round; all but the default is announced and dropped.
constexpr std::string_view kRoundings[] = {"", "rn", "rz", "rp", "rm", "rs"};

Status check_rounding(const TileArguments& arguments) {
  constexpr size_t kRound = 2, kBits = 4;
  std::string mode = arguments.has(kRound) ? TRY(arguments.text(kRound)) : "";
  if (std::find(std::begin(kRoundings), std::end(kRoundings), mode) == std::end(kRoundings))
    return make_error(DiagnosticKind::value_error, arguments.span(kRound),
                      fmt::format("`T.cast` cannot round by `{}`", mode), "it is rn, rz, rp, rm or rs");
  if ((mode == "rs") == arguments.has(kBits)) return {};
  return make_error(DiagnosticKind::wrong_arguments, arguments.span(),
                    "`rbits` of `T.cast` belongs to `round=\"rs\"`, and each needs the other");
}

// A dtype and a value, in either order: the old dialect writes T.Cast(dtype, value), the new T.cast(value, dtype).
struct TypedValue {
  ir::DType type;
  Value value;
};
Result<TypedValue> typed_value(const TileArguments& arguments) {
  TileContext& context = arguments.context();
  size_t at = names_dtype(context, arguments[0]) ? 0 : 1;
  return TypedValue{TRY(resolve_dtype(context, arguments[at], arguments.span(at))), arguments[1 - at]};
}

Result<Value> cast_in_either_order(TileArguments& arguments) {
  TypedValue given = TRY(typed_value(arguments));
  return convert(arguments.context(), given.value, given.type, arguments.span());
}

Result<Value> cast(TileArguments& arguments) {
  TRY(check_rounding(arguments));
  return cast_in_either_order(arguments);
}

// Of the old dialect: `T.reinterpret(T.uint64(0), dtype="handle")`, a pointer that nothing reads.
bool names_handle(const Value& value) { return value.if_string() && *value.if_string() == "handle"; }

Result<Value> reinterpret(TileArguments& arguments) {
  if (names_handle(arguments[0]) || names_handle(arguments[1])) return Value();
  TypedValue given = TRY(typed_value(arguments));
  ir::Expr value = TRY(to_expr(given.value, arguments.span()));
  if (value->type == given.type) return make_expr(arguments.context(), value);
  if (value->type.bits == given.type.bits)
    return make_expr(arguments.context(), ir::reinterpret(std::move(value), given.type, arguments.span()));
  return make_error(DiagnosticKind::dtype_mismatch, arguments.span(),
                    fmt::format("`T.reinterpret` from {} to {} changes the number of bits", ir::to_string(value->type),
                                ir::to_string(given.type)));
}

Result<Value> choose(TileArguments& arguments) {
  TileContext& context = arguments.context();
  if (!is_staged_value(arguments[0]))
    return TRY(context.interpreter.truth(arguments[0], arguments.span(0))) ? arguments[1] : arguments[2];
  ir::Expr condition = TRY(to_condition(arguments[0], arguments.span(0)));
  Operands sides = TRY(matched_operands(arguments[1], arguments[2], arguments.span()));
  Value result = make_expr(context, ir::select(std::move(condition), sides.left, sides.right, arguments.span()));
  return nest(std::move(result), {&arguments[0], &arguments[1], &arguments[2]}, arguments.span());
}

double largest(ir::DType type) {
  if (type == ir::kFloat16) return 65504.0;
  if (type == ir::kBFloat16) return std::ldexp(255.0, 120);
  if (type == ir::kFloat8E4M3) return 448.0;
  if (type == ir::kFloat8E5M2) return 57344.0;
  if (type == ir::kFloat8E8M0) return std::ldexp(1.0, 127);
  if (type == ir::kFloat4E2M1) return 6.0;
  if (type == ir::kTensorFloat32) return std::ldexp(2047.0, 117);
  return type == ir::kFloat32 ? double{std::numeric_limits<float>::max()} : std::numeric_limits<double>::max();
}

Result<Value> infinity(TileArguments& arguments) {
  ir::DType type = TRY(resolve_dtype(arguments.context(), arguments[0], arguments.span(0)));
  // Conversions to types of 8 bits and less saturate: e5m2 has an infinity, but no expression gives it.
  if (!type.is_float() || type.bits <= 8)
    return make_error(DiagnosticKind::dtype_mismatch, arguments.span(),
                      fmt::format("{} has no infinity", ir::to_string(type)), "use `T.max_value(dtype)`");
  return make_expr(arguments.context(), ir::float_imm(std::numeric_limits<double>::infinity(), type, arguments.span()));
}

Result<Value> limit(TileArguments& arguments, bool upper) {
  ir::DType type = TRY(resolve_dtype(arguments.context(), arguments[0], arguments.span(0)));
  if (type.is_float())
    return make_expr(arguments.context(), ir::float_imm(upper                     ? largest(type)
                                                        : type == ir::kFloat8E8M0 ? std::ldexp(1.0, -127)
                                                                                  : -largest(type),
                                                        type, arguments.span()));
  int64_t value = 0;
  if (type.is_bool())
    value = upper ? 1 : 0;
  else if (type.code == ir::TypeCode::signed_int) {
    int64_t top = type.bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (type.bits - 1)) - 1;
    value = upper ? top : -top - 1;
  } else if (upper) {
    value = type.bits == 64 ? -1 : (int64_t{1} << type.bits) - 1;  // an immediate holds the bits
  }
  return make_expr(arguments.context(), ir::int_imm(value, type, arguments.span()));
}
Result<Value> max_value(TileArguments& arguments) { return limit(arguments, true); }
Result<Value> min_value(TileArguments& arguments) { return limit(arguments, false); }

Result<Value> connect(TileArguments& arguments, ir::BinaryOp op) {
  TileContext& context = arguments.context();
  if (arguments.rest().empty())
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(),
                      fmt::format("`{}` needs at least one condition", arguments.function()));
  ir::Expr all;
  for (const Value& value : arguments.rest()) {
    ir::Expr condition = TRY(to_condition(value, arguments.span()));
    all = all ? fold_binary(op, all, std::move(condition), arguments.span()) : condition;
  }
  return make_expr(context, all);
}
Result<Value> all_of(TileArguments& arguments) { return connect(arguments, ir::BinaryOp::logical_and); }
Result<Value> any_of(TileArguments& arguments) { return connect(arguments, ir::BinaryOp::logical_or); }

Result<Value> negated(TileArguments& arguments) {
  return apply_unary(arguments.context(), UnaryOp::logical_not, arguments[0], arguments.span());
}
Result<Value> inverted(TileArguments& arguments) {
  return apply_unary(arguments.context(), UnaryOp::invert, arguments[0], arguments.span());
}

}  // namespace

const std::vector<TileFunction>& value_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"cast", "value, dtype, round?='', sat?=True, rbits?", "the value converted to a dtype", cast},
      {"Cast", "dtype, value", "the value converted to a dtype (old order of arguments)", cast_in_either_order},
      {"reinterpret", "value, dtype", "the same bits as another dtype; both orders of arguments", reinterpret},
      {"if_then_else", "cond, t, f", "t where the condition holds, else f; only the chosen side is computed", choose},
      {"Select", "condition, true_value, false_value", "t where the condition holds, else f", choose},
      {"infinity", "dtype", "positive infinity", infinity},
      {"max_value", "dtype", "the largest finite value of a dtype", max_value},
      {"min_value", "dtype", "the least finite value of a dtype", min_value},
      {"And", "*conditions", "whether all conditions hold", all_of},
      {"Or", "*conditions", "whether one of the conditions holds", any_of},
      {"all", "*conditions", "whether all conditions hold", all_of},
      {"any", "*conditions", "whether one of the conditions holds", any_of},
      {"Not", "condition", "whether the condition does not hold", negated},
      {"bitwise_not", "x", "~x", inverted},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
