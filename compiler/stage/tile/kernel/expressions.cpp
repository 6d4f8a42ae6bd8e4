#include "compiler/stage/tile/kernel/expressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/ir/text/text.h"
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/arguments.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/library/dtypes.h"

namespace tilepilot::stage {
namespace {

bool fits_int32(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
}

// Whether a literal can take an integer type without changing its value.
bool fits_type(int64_t value, ir::DType type) {
  if (type.bits == 64) return value >= 0 || type.code == ir::TypeCode::signed_int;
  if (type.code == ir::TypeCode::unsigned_int) return value >= 0 && value < (int64_t{1} << type.bits);
  int64_t limit = int64_t{1} << (type.bits - 1);
  return value >= -limit && value < limit;
}

}  // namespace

ir::Expr integer_literal(int64_t value, std::optional<ir::DType> like, Span span) {
  if (like && like->is_float()) return ir::float_imm(static_cast<double>(value), *like, span);
  if (like && like->is_int() && fits_type(value, *like)) return ir::int_imm(value, *like, span);
  return ir::int_imm(value, fits_int32(value) ? ir::kInt32 : ir::kInt64, span);
}

namespace {

Error not_an_expression(const Value& value, Span span) {
  if (auto* buffer = value.get_if<BufferObject>())
    return make_error(DiagnosticKind::type_error, span,
                      fmt::format("the buffer `{}` is used as a number", buffer->name()),
                      fmt::format("name an element, as in `{}[i]`", buffer->name()));
  if (value.get_if<RegionObject>())
    return make_error(DiagnosticKind::type_error, span, "a slice of a buffer is used as a number",
                      "name an element, or copy the slice with `T.copy`");
  return make_error(DiagnosticKind::type_error, span,
                    fmt::format("a `{}` cannot be used in a tile expression", value.type_name()));
}

// An integer beyond int64: the upper half of uint64, or a float.
Result<ir::Expr> wide_literal(const BigInteger& value, std::optional<ir::DType> like, Span span) {
  if (like && like->is_float()) return ir::float_imm(value.to_double(), *like, span);
  if (auto bits = value.to_uint64()) return ir::int_imm(static_cast<int64_t>(*bits), ir::kUInt64, span);
  return make_error(DiagnosticKind::integer_overflow, span, fmt::format("`{}` does not fit 64 bits", value.to_text()),
                    "tile programs compute with integers of at most 64 bits");
}

// The type that a Python literal beside `value` takes.
std::optional<ir::DType> literal_type(const Value& value) {
  if (auto* expression = value.get_if<TileExpr>()) return expression->expr->type;
  if (auto* variable = value.get_if<VarObject>()) return variable->buffer->type;
  return std::nullopt;
}

// Sums of bools are sums of integers.
Operands without_bools(Operands operands, Span span) {
  if (!operands.left->type.is_bool()) return operands;
  return {fold_cast(operands.left, ir::kInt32, span), fold_cast(operands.right, ir::kInt32, span)};
}

Result<Value> divide(TileContext& context, const Value& left, const Value& right, Span span) {
  Operands operands = TRY(matched_operands(left, right, span));
  if (!operands.left->type.is_float())
    return make_error(DiagnosticKind::type_error, span, "`/` of two integers is ambiguous",
                      "use `//` for a whole quotient, or cast an operand, as in `T.cast(x, \"float32\") / y`");
  return make_expr(context, fold_binary(ir::BinaryOp::div, operands.left, operands.right, span));
}

// Python's floor division; on floats through `floor`.
Result<Value> floor_divide(TileContext& context, const Value& left, const Value& right, Span span) {
  Operands operands = without_bools(TRY(matched_operands(left, right, span)), span);
  if (auto zero = ir::constant_int(operands.right); zero && *zero == 0)
    return make_error(DiagnosticKind::division_by_zero, span, "integer division by zero");
  if (!operands.left->type.is_float())
    return make_expr(context, fold_binary(ir::BinaryOp::floor_div, operands.left, operands.right, span));
  ir::Expr quotient = ir::binary(ir::BinaryOp::div, operands.left, operands.right, span);
  return make_expr(context, ir::math(ir::MathFn::floor, quotient, span));
}

Result<Value> modulo(TileContext& context, const Value& left, const Value& right, Span span) {
  Operands operands = without_bools(TRY(matched_operands(left, right, span)), span);
  if (auto zero = ir::constant_int(operands.right); zero && *zero == 0)
    return make_error(DiagnosticKind::division_by_zero, span, "integer modulo by zero");
  if (!operands.left->type.is_float())
    return make_expr(context, fold_binary(ir::BinaryOp::floor_mod, operands.left, operands.right, span));
  ir::Expr quotient = ir::binary(ir::BinaryOp::div, operands.left, operands.right, span);
  ir::Expr whole = ir::binary(ir::BinaryOp::mul, ir::math(ir::MathFn::floor, quotient, span), operands.right, span);
  Value rest = make_expr(context, ir::binary(ir::BinaryOp::sub, operands.left, whole, span));
  return nest(std::move(rest), {&left, &left, &right, &right}, span);
}

// A small whole exponent becomes products; other powers need floating point.
Result<Value> power(TileContext& context, const Value& left, const Value& right, Span span) {
  constexpr int64_t kLargestProduct = 4;
  auto exponent = constant_integer(right);
  if (exponent && *exponent >= 1 && *exponent <= kLargestProduct) {
    Value product = make_expr(context, TRY(to_expr(left, span)));
    TRY(nest(product, {&left}, span));
    for (int64_t i = 1; i < *exponent; ++i)
      product = TRY(apply_matched(context, ir::BinaryOp::mul, product, left, span));
    return product;
  }
  Operands operands = TRY(matched_operands(left, right, span));
  if (!operands.left->type.is_float())
    return make_error(DiagnosticKind::type_error, span, "a power of integers needs a constant exponent from 1 to 4",
                      "cast the base to a floating-point type");
  return make_expr(context, ir::binary(ir::BinaryOp::pow, operands.left, operands.right, span));
}

Result<Value> bitwise(TileContext& context, ir::BinaryOp op, Operands operands, Span span) {
  ir::DType type = operands.left->type;
  if (type.is_float())
    return make_error(DiagnosticKind::type_error, span,
                      fmt::format("`{}` needs integers, not {}", ir::to_string(op), ir::to_string(type)));
  if (type.is_bool() && op == ir::BinaryOp::bit_and) op = ir::BinaryOp::logical_and;
  if (type.is_bool() && op == ir::BinaryOp::bit_or) op = ir::BinaryOp::logical_or;
  if (type.is_bool() && op == ir::BinaryOp::bit_xor) op = ir::BinaryOp::ne;
  if (op == ir::BinaryOp::shl || op == ir::BinaryOp::shr) operands = without_bools(operands, span);
  return make_expr(context, fold_binary(op, operands.left, operands.right, span));
}

struct OperatorRow {
  BinaryOp python;
  ir::BinaryOp ir;
  bool integers_only;
};
constexpr OperatorRow kOperators[] = {
    {BinaryOp::add, ir::BinaryOp::add, false},      {BinaryOp::sub, ir::BinaryOp::sub, false},
    {BinaryOp::mul, ir::BinaryOp::mul, false},      {BinaryOp::shl, ir::BinaryOp::shl, true},
    {BinaryOp::shr, ir::BinaryOp::shr, true},       {BinaryOp::bit_and, ir::BinaryOp::bit_and, true},
    {BinaryOp::bit_or, ir::BinaryOp::bit_or, true}, {BinaryOp::bit_xor, ir::BinaryOp::bit_xor, true},
};

Result<Value> unary_expression(TileContext& context, UnaryOp op, const Value& operand, Span span) {
  ir::Expr expr = TRY(to_expr(operand, span));
  if (op == UnaryOp::logical_not)
    return make_expr(context, ir::unary(ir::UnaryOp::logical_not, TRY(to_condition(operand, span)), span));
  if (op == UnaryOp::invert && expr->type.is_bool())
    return make_expr(context, ir::unary(ir::UnaryOp::logical_not, std::move(expr), span));
  if (expr->type.is_bool()) expr = fold_cast(expr, ir::kInt32, span);
  if (op == UnaryOp::plus) return make_expr(context, expr);
  if (op == UnaryOp::minus) return make_expr(context, fold_negation(expr, span));
  if (expr->type.is_float())
    return make_error(DiagnosticKind::type_error, span,
                      fmt::format("`~` needs an integer, not {}", ir::to_string(expr->type)));
  return make_expr(context, ir::unary(ir::UnaryOp::bit_not, expr, span));
}

Result<Value> binary_expression(TileContext& context, BinaryOp op, const Value& left, const Value& right, Span span) {
  if (op == BinaryOp::div) return divide(context, left, right, span);
  if (op == BinaryOp::floor_div) return floor_divide(context, left, right, span);
  if (op == BinaryOp::mod) return modulo(context, left, right, span);
  if (op == BinaryOp::pow) return power(context, left, right, span);
  for (const OperatorRow& row : kOperators) {
    if (row.python != op) continue;
    Operands operands = TRY(matched_operands(left, right, span));
    if (row.integers_only) return bitwise(context, row.ir, operands, span);
    operands = without_bools(operands, span);
    return make_expr(context, fold_binary(row.ir, operands.left, operands.right, span));
  }
  return make_error(DiagnosticKind::type_error, span,
                    fmt::format("`{}` does not apply to tile expressions", syntax::spelling(op)),
                    "matrix products of tiles are `T.gemm(A, B, C)`");
}

Result<Value> compare_expression(TileContext& context, CompareOp op, const Value& left, const Value& right, Span span) {
  static constexpr std::pair<CompareOp, ir::BinaryOp> kComparisons[] = {
      {CompareOp::eq, ir::BinaryOp::eq}, {CompareOp::ne, ir::BinaryOp::ne}, {CompareOp::lt, ir::BinaryOp::lt},
      {CompareOp::le, ir::BinaryOp::le}, {CompareOp::gt, ir::BinaryOp::gt}, {CompareOp::ge, ir::BinaryOp::ge}};
  for (const auto& [python, code] : kComparisons) {
    if (python != op) continue;
    Operands operands = TRY(matched_operands(left, right, span));
    if (op != CompareOp::eq && op != CompareOp::ne) operands = without_bools(operands, span);
    return make_expr(context, fold_binary(code, operands.left, operands.right, span));
  }
  return make_error(DiagnosticKind::type_error, span,
                    fmt::format("`{}` does not apply to tile expressions", syntax::spelling(op)));
}

Result<std::optional<Value>> some(Result<Value> value) {
  if (!value.ok()) return std::move(value).take_error();
  return std::optional<Value>(*std::move(value));
}

// Whether an operator of a tile expression can take this partner; other objects may know what to do themselves.
bool is_partner(const Value& value) {
  return value.as_number().has_value() || is_tile_value(value) || value.get_if<IntObject>();
}

}  // namespace

Value make_axis(TileContext& context, const ir::Var& var, Span span) {
  auto axis = std::make_shared<TileExpr>(context, ir::var_ref(var, span));
  axis->is_axis = true;
  return Value(std::move(axis));
}

Value make_expr(TileContext& context, ir::Expr expr) { return std::make_shared<TileExpr>(context, std::move(expr)); }

Result<Value> nest(Value result, std::initializer_list<const Value*> parts, Span span) {
  constexpr int kMaxDepth = 250, kMaxSize = 10'000;
  auto* made = result.get_if<TileExpr>();
  if (!made) return result;
  int size = 1;
  for (const Value* part : parts) {
    auto* inner = part->get_if<TileExpr>();
    if (!inner) continue;
    made->depth = std::max(made->depth, inner->depth + 1);
    size += inner->size;
  }
  made->size = std::max(made->size, size);
  if (made->depth <= kMaxDepth && made->size <= kMaxSize) return result;
  return make_error(
      DiagnosticKind::nesting_too_deep, span,
      fmt::format("this tile expression has more than {} operations, or nests deeper than {}", kMaxSize, kMaxDepth),
      "give parts of it a name, or accumulate in a buffer");
}

bool is_tile_value(const Value& value) { return value.get_if<TileExpr>() || value.get_if<VarObject>(); }

bool is_staged_value(const Value& value) {
  if (auto* expression = value.get_if<TileExpr>()) return !ir::constant_int(expression->expr);
  return value.get_if<VarObject>() != nullptr;
}

bool is_atom(const ir::Expr& expr) {
  return std::holds_alternative<ir::IntImm>(expr->node) || std::holds_alternative<ir::FloatImm>(expr->node) ||
         std::holds_alternative<ir::VarRef>(expr->node);
}

Result<ir::Expr> to_expr(const Value& value, Span span, std::optional<ir::DType> like) {
  if (auto* expression = value.get_if<TileExpr>()) return expression->expr;
  if (auto* variable = value.get_if<VarObject>()) return variable->load(span);
  if (auto* flag = value.if_bool()) {
    if (!like || like->is_bool()) return ir::bool_imm(*flag, span);
    return integer_literal(*flag ? 1 : 0, like, span);
  }
  if (auto* integer = value.if_int()) return integer_literal(*integer, like, span);
  if (auto* big = value.get_if<IntObject>()) return wide_literal(big->value, like, span);
  if (auto* real = value.if_float()) return ir::float_imm(*real, like && like->is_float() ? *like : ir::kFloat32, span);
  return not_an_expression(value, span);
}

Result<Operands> matched_operands(const Value& left, const Value& right, Span span) {
  ir::Expr a = TRY(to_expr(left, span, literal_type(right)));
  ir::Expr b = TRY(to_expr(right, span, literal_type(left)));
  if (!ir::has_common_type(a->type, b->type))
    return make_error(DiagnosticKind::dtype_mismatch, span,
                      fmt::format("{} and {} have no common type", ir::to_string(a->type), ir::to_string(b->type)),
                      "cast one of them, as in `T.cast(x, \"float32\")`");
  ir::DType type = ir::promote(a->type, b->type);
  // A type for memory and GEMMs: upstream computes with its elements as with float32, and so do its instructions.
  if (type == ir::kTensorFloat32) type = ir::kFloat32;
  return Operands{fold_cast(std::move(a), type, span), fold_cast(std::move(b), type, span)};
}

Result<ir::Expr> to_condition(const Value& value, Span span) {
  ir::Expr expr = TRY(to_expr(value, span));
  if (expr->type.is_bool()) return expr;
  ir::Expr zero = expr->type.is_float() ? ir::float_imm(0, expr->type, span) : ir::int_imm(0, expr->type, span);
  return fold_binary(ir::BinaryOp::ne, std::move(expr), std::move(zero), span);
}

Result<ir::Expr> to_index(const Value& value, std::string_view what, Span span) {
  ir::Expr expr = TRY(to_integer(value, what, span));
  return expr->type.bits < 32 ? fold_cast(std::move(expr), ir::kInt32, span) : expr;
}

Result<ir::Expr> to_integer(const Value& value, std::string_view what, Span span) {
  ir::Expr expr = TRY(to_expr(value, span));
  if (expr->type.is_bool()) return fold_cast(std::move(expr), ir::kInt32, span);
  if (expr->type.is_int()) return expr;
  return make_error(DiagnosticKind::type_error, span,
                    fmt::format("{} must be an integer, not {}", what, ir::to_string(expr->type)),
                    "cast it, as in `T.cast(x, \"int32\")`");
}

Result<Value> convert(TileContext& context, const Value& value, ir::DType type, Span span) {
  ir::Expr expr = TRY(to_expr(value, span, type));
  if (type.is_bool()) return nest(make_expr(context, TRY(to_condition(value, span))), {&value}, span);
  return nest(make_expr(context, explicit_cast(std::move(expr), type, span)), {&value}, span);
}

Result<Value> apply_unary(TileContext& context, UnaryOp op, const Value& operand, Span span) {
  return nest(TRY(unary_expression(context, op, operand, span)), {&operand}, span);
}

Result<Value> apply_binary(TileContext& context, BinaryOp op, const Value& left, const Value& right, Span span) {
  return nest(TRY(binary_expression(context, op, left, right, span)), {&left, &right}, span);
}

Result<Value> apply_compare(TileContext& context, CompareOp op, const Value& left, const Value& right, Span span) {
  return nest(TRY(compare_expression(context, op, left, right, span)), {&left, &right}, span);
}

Result<Value> apply_matched(TileContext& context, ir::BinaryOp op, const Value& left, const Value& right, Span span) {
  Operands operands = without_bools(TRY(matched_operands(left, right, span)), span);
  return nest(make_expr(context, fold_binary(op, operands.left, operands.right, span)), {&left, &right}, span);
}

Result<std::optional<Value>> expression_attribute(TileContext& context, const Value& self, Name name, Span span) {
  if (name.text() == "dtype") {
    ir::Expr expr = TRY(to_expr(self, span));
    return std::optional<Value>(std::make_shared<DTypeObject>(context, expr->type));
  }
  if (name.text() != "astype") return std::optional<Value>();
  auto body = [&context, self](Interpreter&, CallArgs& args) -> Result<Value> {
    if (args.positional.size() != 1)
      return make_error(DiagnosticKind::wrong_arguments, args.span, "`astype` takes one dtype",
                        "as in `x.astype(\"float32\")`");
    ir::DType type = TRY(resolve_dtype(context, args.positional[0], args.span));
    return convert(context, self, type, args.span);
  };
  return std::optional<Value>(std::make_shared<BuiltinFunction>("astype", std::move(body)));
}

Result<Value> TileExpr::get_attribute(Interpreter& interpreter, Name name, Span span) {
  Value self = std::static_pointer_cast<TileExpr>(shared_from_this());
  if (auto found = TRY(expression_attribute(context, self, name, span))) return *found;
  return Object::get_attribute(interpreter, name, span);
}

Result<Value> TileExpr::get_item(Interpreter&, const Value&, Span span) {
  return make_error(DiagnosticKind::type_error, span, "this expression is a single number and cannot be indexed",
                    "`A[i][j]` on a buffer is written `A[i, j]`");
}

Result<int64_t> TileExpr::length(Interpreter& interpreter, Span span) {
  return is_axis ? Result<int64_t>(1) : Object::length(interpreter, span);
}

Result<std::unique_ptr<Iterator>> TileExpr::iterate(Interpreter& interpreter, Span span) {
  if (!is_axis) return Object::iterate(interpreter, span);
  return iterate_over({Value(shared_from_this())});
}

Result<bool> TileExpr::truth(Interpreter&, Span span) {
  if (auto constant = ir::constant_int(expr)) return *constant != 0;
  return make_error(DiagnosticKind::staged_value_misused, span,
                    "the truth of this value is known only at run time, but Python needs it now",
                    "use it in an `if` statement of the kernel, `T.if_then_else` or `T.Select`");
}

Result<std::string> TileExpr::repr(Interpreter&) { return ir::to_text(expr); }

Result<std::optional<Value>> TileExpr::unary(Interpreter&, UnaryOp op, Span span) {
  return some(apply_unary(context, op, std::static_pointer_cast<TileExpr>(shared_from_this()), span));
}

Result<std::optional<Value>> TileExpr::binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                              Span span) {
  if (!is_partner(other)) return not_an_expression(other, span);
  Value self = std::static_pointer_cast<TileExpr>(shared_from_this());
  return some(reflected ? apply_binary(context, op, other, self, span) : apply_binary(context, op, self, other, span));
}

Result<std::optional<Value>> TileExpr::compare(Interpreter&, CompareOp op, const Value& other, Span span) {
  if (!is_partner(other)) return std::optional<Value>();
  Value self = std::static_pointer_cast<TileExpr>(shared_from_this());
  return some(apply_compare(context, op, self, other, span));
}

}  // namespace tilepilot::stage
