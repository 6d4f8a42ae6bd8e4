// Tile expressions as Python values: operators build IR, with the language's promotion rules. A Python number takes the
// other operand's type.
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

struct TileExpr final : TypedObject<TileExpr> {
  static constexpr Type kType{"tile expression"};
  TileExpr(TileContext& context_, ir::Expr expr_) : context(context_), expr(std::move(expr_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Result<int64_t> length(Interpreter&, Span span) override;
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> truth(Interpreter&, Span) override;
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> unary(Interpreter&, UnaryOp op, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span) override;
  TileContext& context;
  const ir::Expr expr;
  bool is_axis = false;  // a block or thread index: unpacks to itself, as in `with T.Kernel(n) as (bx,)`
  int depth = 1;         // how deep operations nest in it
  int size = 1;          // how many there are, a part that is used twice counted twice
};

Value make_expr(TileContext& context, ir::Expr expr);
// The index of a block or thread along an axis.
Value make_axis(TileContext& context, const ir::Var& var, Span span);
// Notes that `result` was made from `parts` (one used twice stands twice), and refuses expressions that nest too deep
// for the recursions of later stages or that doubling made huge.
Result<Value> nest(Value result, std::initializer_list<const Value*> parts, Span span);

// A tile expression or a variable made by `T.alloc_var`.
bool is_tile_value(const Value& value);
// Likewise, and not a constant: its value is known only at run time.
bool is_staged_value(const Value& value);

// A constant or a variable: needs no let of its own.
bool is_atom(const ir::Expr& expr);

// The value as an IR expression. Python numbers get the type `like`, as far as they fit it; without one int32 (int64 if
// too large), float32 or bool. `type_error` for values that are no numbers.
Result<ir::Expr> to_expr(const Value& value, Span span, std::optional<ir::DType> like = std::nullopt);
// Two operands in their common type.
struct Operands {
  ir::Expr left, right;
};
Result<Operands> matched_operands(const Value& left, const Value& right, Span span);
// As a bool: numbers are compared with zero.
Result<ir::Expr> to_condition(const Value& value, Span span);
// A Python integer: in the type of what it meets, else int32 if it fits there, else int64.
ir::Expr integer_literal(int64_t value, std::optional<ir::DType> like, Span span);
// As an index: an integer expression of at least 32 bits, so that what is added to it does not wrap at 8 or 16.
Result<ir::Expr> to_index(const Value& value, std::string_view what, Span span);
// An integer expression in its own type.
Result<ir::Expr> to_integer(const Value& value, std::string_view what, Span span);
// Cast to a type; used by dtype objects, `T.cast` and `.astype`.
Result<Value> convert(TileContext& context, const Value& value, ir::DType type, Span span);

Result<Value> apply_unary(TileContext& context, UnaryOp op, const Value& operand, Span span);
Result<Value> apply_binary(TileContext& context, BinaryOp op, const Value& left, const Value& right, Span span);
Result<Value> apply_compare(TileContext& context, CompareOp op, const Value& left, const Value& right, Span span);
// One IR operation on matched operands: min, max, and what the operators come down to.
Result<Value> apply_matched(TileContext& context, ir::BinaryOp op, const Value& left, const Value& right, Span span);
// `dtype`, `astype`: attributes of everything that is an expression.
Result<std::optional<Value>> expression_attribute(TileContext& context, const Value& self, Name name, Span span);

}  // namespace tilepilot::stage
