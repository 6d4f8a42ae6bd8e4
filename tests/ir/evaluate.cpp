#include "evaluate.h"

#include <algorithm>
#include <cstdlib>

#include "compiler/ir/arithmetic.h"

namespace tilepilot::ir::testing {

static int64_t evaluate(const Binary& n, DType type, const Values& values) {
  const Wide a = evaluate(n.left, values), b = evaluate(n.right, values);
  switch (n.op) {
    case BinaryOp::add:
      return wrap(a + b, type);
    case BinaryOp::sub:
      return wrap(a - b, type);
    case BinaryOp::mul:
      return wrap(a * b, type);
    case BinaryOp::floor_div:
      return wrap(floor_div(a, b), type);
    case BinaryOp::floor_mod:
      return wrap(floor_mod(a, b), type);
    case BinaryOp::min:
      return int64_t(std::min(a, b));
    case BinaryOp::max:
      return int64_t(std::max(a, b));
    case BinaryOp::shl:
      return wrap(a << int(b), type);
    case BinaryOp::shr:
      return int64_t(a >> int(b));
    case BinaryOp::bit_and:
      return int64_t(a & b);
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    case BinaryOp::ge:
      return a >= b;
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::logical_and:
      return a && b;
    case BinaryOp::logical_or:
      return a || b;
    case BinaryOp::bit_or:
      return int64_t(a | b);
    case BinaryOp::bit_xor:
      return int64_t(a ^ b);
    default:
      std::abort();
  }
}

int64_t evaluate(const Expr& e, const Values& values) {
  if (const auto* n = std::get_if<IntImm>(&e->node)) return n->value;
  if (const auto* n = std::get_if<VarRef>(&e->node)) return values.at(n->var.get());
  if (const auto* n = std::get_if<Binary>(&e->node)) return evaluate(*n, e->type, values);
  if (const auto* n = std::get_if<Cast>(&e->node)) return wrap(evaluate(n->value, values), e->type);
  if (const auto* n = std::get_if<Select>(&e->node)) {
    return evaluate(evaluate(n->condition, values) ? n->then : n->otherwise, values);
  }
  const auto& n = std::get<Unary>(e->node);
  const int64_t x = evaluate(n.operand, values);
  return n.op == UnaryOp::neg ? wrap(-Wide{x}, e->type) : n.op == UnaryOp::logical_not ? !x : wrap(~Wide{x}, e->type);
}

}  // namespace tilepilot::ir::testing
