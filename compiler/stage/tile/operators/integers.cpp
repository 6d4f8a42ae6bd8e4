// Integer arithmetic beyond Python's operators: rounding up, C's division, flat indices, bits.
#include <fmt/format.h>

#include <limits>

#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// Python's arithmetic on values of either time.
class Arithmetic {
 public:
  explicit Arithmetic(const TileArguments& arguments)
      : interpreter_(arguments.context().interpreter), span_(arguments.span()) {}
  Result<Value> operator()(BinaryOp op, const Value& left, const Value& right) const {
    return interpreter_.binary(op, left, right, span_);
  }

 private:
  Interpreter& interpreter_;
  Span span_;
};

Result<Value> ceildiv(TileArguments& arguments) {
  return ceil_divide(arguments.context(), arguments[0], arguments[1], arguments.span());
}

Result<Value> align_up(TileArguments& arguments) {
  Arithmetic arithmetic(arguments);
  return arithmetic(BinaryOp::mul, TRY(ceildiv(arguments)), arguments[1]);
}

// a / b rounded towards 0. Where the signs differ that is rounded up: the quotient of a + b less one towards zero,
// rounded down. One division, since they are the slowest of all instructions.
Result<Value> truncdiv(TileArguments& arguments) {
  Span span = arguments.span();
  auto a = constant_integer(arguments[0]), b = constant_integer(arguments[1]);
  if (b && *b == 0) return make_error(DiagnosticKind::division_by_zero, span, "`T.truncdiv` by zero");
  if (a && b && *b != -1) return Value(*a / *b);
  Operands sides = TRY(matched_operands(arguments[0], arguments[1], span));
  if (!sides.left->type.is_int())
    return make_error(DiagnosticKind::type_error, span, "`T.truncdiv` needs integers", "use `/` for real numbers");
  ir::DType type = sides.left->type;
  ir::Expr dividend = sides.left;
  if (type.code == ir::TypeCode::signed_int) {
    const ir::Expr zero = ir::int_imm(0, type, span), one = ir::int_imm(1, type, span);
    const auto of = [&](ir::BinaryOp op, const ir::Expr& left, const ir::Expr& right) {
      return fold_binary(op, left, right, span);
    };
    const ir::Expr is_negative = of(ir::BinaryOp::lt, sides.right, zero);
    const ir::Expr differ = of(ir::BinaryOp::ne, of(ir::BinaryOp::lt, sides.left, zero), is_negative);
    const ir::Expr less = fold_select(is_negative, of(ir::BinaryOp::add, sides.right, one),
                                      of(ir::BinaryOp::sub, sides.right, one), span);
    dividend = of(ir::BinaryOp::add, dividend, fold_select(differ, less, zero, span));
  }
  Value result =
      make_expr(arguments.context(), fold_binary(ir::BinaryOp::floor_div, std::move(dividend), sides.right, span));
  const Value &x = arguments[0], &y = arguments[1];
  return nest(std::move(result), {&x, &x, &y, &y, &y, &y, &y}, span);
}

Result<Value> truncmod(TileArguments& arguments) {
  Arithmetic arithmetic(arguments);
  Value whole = TRY(arithmetic(BinaryOp::mul, TRY(truncdiv(arguments)), arguments[1]));
  return arithmetic(BinaryOp::sub, arguments[0], whole);
}

// T.linear_index(i, j, k, stride_j, stride_k)
Result<Value> linear_index(TileArguments& arguments) {
  const std::vector<Value>& given = arguments.rest();
  if (given.size() % 2 == 0)
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(),
                      fmt::format("`T.linear_index` got {} arguments", given.size()),
                      "it takes the indices, then the extents of all axes but the first");
  Arithmetic arithmetic(arguments);
  const size_t rank = (given.size() + 1) / 2;
  Value index = given[0];
  for (size_t axis = 1; axis < rank; ++axis) {
    index = TRY(arithmetic(BinaryOp::mul, index, given[rank + axis - 1]));
    index = TRY(arithmetic(BinaryOp::add, index, given[axis]));
  }
  return index;
}

Result<Value> index_to_coordinates(TileArguments& arguments) {
  std::vector<Value> shape = TRY(arguments.context().interpreter.to_vector(arguments[1], arguments.span(1)));
  Arithmetic arithmetic(arguments);
  Value rest = arguments[0];
  std::vector<Value> coordinates(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    coordinates[axis] = TRY(arithmetic(BinaryOp::mod, rest, shape[axis]));
    rest = TRY(arithmetic(BinaryOp::floor_div, rest, shape[axis]));
  }
  return make_list(std::move(coordinates));
}

// The bits of an integer as an unsigned one of at least 32 bits.
Result<ir::Expr> bits_of(const TileArguments& arguments) {
  ir::Expr value =
      TRY(to_integer(arguments[0], fmt::format("the argument of `{}`", arguments.function()), arguments.span()));
  ir::DType same{ir::TypeCode::unsigned_int, value->type.bits};
  if (value->type != same) value = ir::reinterpret(std::move(value), same, arguments.span());
  return same.bits < 32 ? fold_cast(std::move(value), ir::kUInt32, arguments.span()) : value;
}

template <ir::MathFn function>
Result<Value> bit_count(TileArguments& arguments) {
  ir::Expr count = ir::math(function, TRY(bits_of(arguments)), arguments.span());
  return nest(make_expr(arguments.context(), fold_cast(std::move(count), ir::kInt32, arguments.span())),
              {&arguments[0]}, arguments.span());
}

// Of an integer below 32 bits the zeros before its own bits do not count.
Result<Value> clz(TileArguments& arguments) {
  ir::Expr value = TRY(to_integer(arguments[0], "the argument of `T.clz`", arguments.span()));
  Value count = TRY(bit_count<ir::MathFn::leading_zeros>(arguments));
  if (value->type.bits >= 32) return count;
  return apply_binary(arguments.context(), BinaryOp::sub, count, Value(int64_t{32 - value->type.bits}),
                      arguments.span());
}

// T.dp4a(A, B, C): C[0] += the sum of four products, from where A, B and C begin.
Result<Value> dp4a(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  Span span = arguments.span();
  auto element = [&](size_t i, ir::DType wanted) -> Result<ir::Region> {
    ir::Region region = TRY(tile_region(arguments, i));
    if (region.buffer->type == wanted) return region;
    return make_error(DiagnosticKind::dtype_mismatch, arguments.span(i),
                      fmt::format("`T.dp4a` multiplies int8 into int32, but `{}` is {}", region.buffer->name,
                                  ir::to_string(region.buffer->type)));
  };
  ir::Region a = TRY(element(0, ir::kInt8)), b = TRY(element(1, ir::kInt8)), c = TRY(element(2, ir::kInt32));
  ir::Expr sum = ir::load(c.buffer, c.start, span);
  constexpr int kProducts = 4;
  for (int k = 0; k < kProducts; ++k) {
    auto factor = [&](const ir::Region& region) {
      return ir::cast(ir::load(region.buffer, neighbour(region, ir::int_imm(k, ir::kInt32, span), span), span),
                      ir::kInt32, span);
    };
    sum = ir::binary(ir::BinaryOp::add, sum, ir::binary(ir::BinaryOp::mul, factor(a), factor(b), span), span);
  }
  TRY(builder.emit(ir::Store{c.buffer, c.start, std::move(sum)}, span));
  return Value();
}

// The sign of y on x.
Result<Value> copysign(TileArguments& arguments) {
  Span span = arguments.span();
  Operands sides = TRY(matched_operands(arguments[0], arguments[1], span));
  ir::DType type = sides.left->type;
  if (!type.is_float())
    return make_error(DiagnosticKind::type_error, span, "`T.copysign` needs floating-point numbers");
  ir::DType same{ir::TypeCode::unsigned_int, type.bits};
  ir::Expr sign = ir::int_imm(static_cast<int64_t>(uint64_t{1} << (type.bits - 1)), same, span);
  ir::Expr rest = ir::int_imm(static_cast<int64_t>((uint64_t{1} << (type.bits - 1)) - 1), same, span);
  auto part = [&](const ir::Expr& value, const ir::Expr& mask) {
    return ir::binary(ir::BinaryOp::bit_and, ir::reinterpret(value, same, span), mask, span);
  };
  ir::Expr bits = ir::binary(ir::BinaryOp::bit_or, part(sides.left, rest), part(sides.right, sign), span);
  return nest(make_expr(arguments.context(), ir::reinterpret(std::move(bits), type, span)),
              {&arguments[0], &arguments[1]}, span);
}

bool is_unsigned(const Value& value) {
  auto* expression = value.get_if<TileExpr>();
  return expression && expression->expr->type.code == ir::TypeCode::unsigned_int;
}

Result<Value> negative(TileContext& context, const Value& value, Span span) {
  return apply_binary(context, BinaryOp::sub, Value(int64_t{0}), value, span);
}

}  // namespace

Result<Value> ceil_divide(TileContext& context, const Value& a, const Value& b, Span span) {
  auto dividend = constant_integer(a), divisor = constant_integer(b);
  if (divisor && *divisor == 0) return make_error(DiagnosticKind::division_by_zero, span, "`ceildiv` by zero");
  if (dividend && divisor) {
    if (*divisor == -1 && *dividend == std::numeric_limits<int64_t>::min())
      return make_error(DiagnosticKind::integer_overflow, span, "the quotient of `ceildiv` leaves the 64-bit range");
    int64_t quotient = *dividend / *divisor;
    bool rounds_up = *dividend % *divisor != 0 && (*dividend < 0) == (*divisor < 0);
    return Value(quotient + (rounds_up ? 1 : 0));
  }
  // The sum below is rounded up by positive divisors only.
  if (!is_unsigned(a) && !is_unsigned(b) && divisor.value_or(-1) < 0) {
    Value floor = TRY(apply_binary(context, BinaryOp::floor_div, TRY(negative(context, a, span)), b, span));
    return negative(context, floor, span);
  }
  Value sum = TRY(apply_binary(context, BinaryOp::add, a, b, span));
  Value rounded = TRY(apply_binary(context, BinaryOp::sub, sum, Value(int64_t{1}), span));
  return apply_binary(context, BinaryOp::floor_div, rounded, b, span);
}

const std::vector<TileFunction>& integer_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"ceildiv", "a, b", "a / b rounded up, for integers", ceildiv},
      {"cdiv", "a, b", "a / b rounded up, for integers", ceildiv},
      {"align_up", "x, y", "the least multiple of y that is not less than x", align_up},
      {"truncdiv", "a, b", "a / b rounded towards 0, for integers", truncdiv},
      {"truncmod", "a, b", "the remainder of `T.truncdiv`, with the sign of a", truncmod},
      {"linear_index", "*indices_and_extents", "indices as one: `T.linear_index(i, j, k, extent_j, extent_k)`",
       linear_index},
      {"index_to_coordinates", "index, shape", "one index as a list of indices, the last axis fastest",
       index_to_coordinates},
      {"popcount", "x", "how many bits of an integer are set", bit_count<ir::MathFn::popcount>},
      {"clz", "x", "how many bits of an integer are 0 before the first that is set", clz},
      {"dp4a", "A, B, C", "C += four products of neighbouring int8 elements, from where A, B and C begin", dp4a},
      {"copysign", "x, y", "x with the sign of y", copysign},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
