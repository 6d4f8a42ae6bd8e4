#include "compiler/ir/expr.h"

#include <array>

namespace tilepilot::ir {
namespace {

Expr make(ExprNode::Node node, DType type, Span span) {
  return std::make_shared<ExprNode>(ExprNode{std::move(node), type, span});
}

bool gives_bool(BinaryOp op) { return op >= BinaryOp::eq; }

bool gives_bool(MathFn function) { return function >= MathFn::isnan; }

// In the order of the enumerators.
constexpr std::array<std::string_view, 3> kUnary{"-", "not", "~"};
constexpr std::array<std::string_view, 27> kBinary{
    "+",  "-",  "*", "/", "//", "%",  "min", "max", "pow", "atan2", "hypot", "ldexp", "nextafter", "fmod",
    "<<", ">>", "&", "|", "^",  "==", "!=",  "<",   "<=",  ">",     ">=",    "and",   "or"};
constexpr std::array<std::string_view, 33> kMath{
    "exp",     "exp2", "exp10", "log",  "log2",  "log10", "log1p",         "sqrt",     "rsqrt", "sin",   "cos",
    "tan",     "sinh", "cosh",  "tanh", "asin",  "acos",  "atan",          "asinh",    "acosh", "atanh", "erf",
    "sigmoid", "abs",  "floor", "ceil", "round", "trunc", "leading_zeros", "popcount", "isnan", "isinf", "isfinite"};
constexpr std::array<std::string_view, 5> kScope{"global", "shared", "fragment", "local", "barrier"};

static_assert(kUnary.size() == size_t(UnaryOp::bit_not) + 1);
static_assert(kBinary.size() == size_t(BinaryOp::logical_or) + 1);
static_assert(kMath.size() == size_t(MathFn::isfinite) + 1);
static_assert(kScope.size() == size_t(Scope::barrier) + 1);

}  // namespace

Expr int_imm(int64_t value, DType type, Span span) { return make(IntImm{value}, type, span); }
Expr float_imm(double value, DType type, Span span) { return make(FloatImm{value}, type, span); }
Expr bool_imm(bool value, Span span) { return make(IntImm{value ? 1 : 0}, kBool, span); }

Expr var_ref(Var var, Span span) {
  const DType type = var->type;
  return make(VarRef{std::move(var)}, type, span);
}

Expr load(Buffer buffer, std::vector<Expr> indices, Span span) {
  const DType type = buffer->type;
  return make(Load{std::move(buffer), std::move(indices)}, type, span);
}

Expr unary(UnaryOp op, Expr operand, Span span) {
  const DType type = op == UnaryOp::logical_not ? kBool : operand->type;
  return make(Unary{op, std::move(operand)}, type, span);
}

Expr binary(BinaryOp op, Expr left, Expr right, Span span) {
  const DType type = gives_bool(op) ? kBool : left->type;
  return make(Binary{op, std::move(left), std::move(right)}, type, span);
}

Expr math(MathFn function, Expr argument, Span span) {
  const DType type = gives_bool(function) ? kBool : argument->type;
  return make(Math{function, std::move(argument)}, type, span);
}

Expr select(Expr condition, Expr then, Expr otherwise, Span span) {
  const DType type = then->type;
  return make(Select{std::move(condition), std::move(then), std::move(otherwise)}, type, span);
}

Expr cast(Expr value, DType type, Span span) {
  if (value->type == type) return value;
  return make(Cast{std::move(value)}, type, span);
}

Expr reinterpret(Expr value, DType type, Span span) { return make(Reinterpret{std::move(value)}, type, span); }

std::optional<int64_t> constant_int(const Expr& expr) {
  const auto* imm = std::get_if<IntImm>(&expr->node);
  if (!imm) return std::nullopt;
  return imm->value;
}

std::string_view to_string(UnaryOp op) { return kUnary[size_t(op)]; }
std::string_view to_string(BinaryOp op) { return kBinary[size_t(op)]; }
std::string_view to_string(MathFn function) { return kMath[size_t(function)]; }
std::string_view to_string(Scope scope) { return kScope[size_t(scope)]; }

}  // namespace tilepilot::ir
