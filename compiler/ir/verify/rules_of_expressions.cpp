#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/bounds.h"
#include "compiler/ir/verify/verify_rules.h"
#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

// Every use of a buffer by a statement: a store's, or the regions of a tile operator.
struct Use {
  const Buffer& buffer;
  const std::vector<Expr>& indices;
};

std::vector<Use> uses(const Stmt& s) {
  if (const auto* store = std::get_if<Store>(&s->node)) return {{store->buffer, store->indices}};
  std::vector<Use> result;
  const Accesses accesses = region_accesses(s);
  for (const auto* list : {&accesses.reads, &accesses.writes}) {
    for (const Region* r : *list) result.push_back({r->buffer, r->start});
  }
  return result;
}

std::string first_problem(const Stmt& s, std::string (*check)(const Use&)) {
  for (const Use& use : uses(s)) {
    if (std::string problem = check(use); !problem.empty()) return problem;
  }
  return {};
}

std::string var_in_scope(const Expr& e, const Surroundings& around) {
  const auto* ref = as<VarRef>(e);
  if (!ref || around.vars.count(ref->var.get()) > 0) return {};
  return fmt::format("variable `{}` is used where it is not in scope", ref->var->name);
}

std::string undeclared(const Buffer& b, const Surroundings& around) {
  if (around.buffers.count(b.get()) > 0) return {};
  return fmt::format("buffer `{}` is neither a parameter nor an allocation of this kernel", b->name);
}
std::string buffer_declared(const Expr& e, const Surroundings& around) {
  const auto* n = as<Load>(e);
  return n ? undeclared(n->buffer, around) : std::string();
}
std::string buffers_declared(const Stmt& s, const Surroundings& around) {
  for (const Use& use : uses(s)) {
    if (std::string problem = undeclared(use.buffer, around); !problem.empty()) return problem;
  }
  return {};
}

std::string wrong_count(const Use& use) {
  if (use.indices.size() == use.buffer->rank()) return {};
  return fmt::format("`{}` has {} axes, but is indexed with {}", use.buffer->name, use.buffer->rank(),
                     use.indices.size());
}
std::string index_count(const Expr& e, const Surroundings&) {
  const auto* n = as<Load>(e);
  return n ? wrong_count({n->buffer, n->indices}) : std::string();
}
std::string index_counts(const Stmt& s, const Surroundings&) {
  const auto* n = std::get_if<Store>(&s->node);
  return n ? wrong_count({n->buffer, n->indices}) : std::string();
}

std::string wrong_index(const Use& use) {
  for (const Expr& index : use.indices) {
    if (!index->type.is_int()) return fmt::format("an index of `{}` is {}", use.buffer->name, to_string(index->type));
  }
  return {};
}
std::string index_type(const Expr& e, const Surroundings&) {
  const auto* n = as<Load>(e);
  return n ? wrong_index({n->buffer, n->indices}) : std::string();
}
std::string index_types(const Stmt& s, const Surroundings&) { return first_problem(s, wrong_index); }

std::string operands_agree(const Expr& e, const Surroundings&) {
  const auto* n = as<Binary>(e);
  if (!n || n->left->type == n->right->type) return {};
  return fmt::format("the operands of `{}` are {} and {}", to_string(n->op), to_string(n->left->type),
                     to_string(n->right->type));
}

bool accepts(BinaryOp op, DType type) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max:
      return !type.is_bool();
    case BinaryOp::div:
    case BinaryOp::pow:
    case BinaryOp::atan2:
    case BinaryOp::hypot:
    case BinaryOp::ldexp:
    case BinaryOp::fmod:
      return type.is_float();
    case BinaryOp::nextafter:
      return type.is_float() && !type.is_small_float();
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::shl:
    case BinaryOp::shr:
      return type.is_int();
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
      return !type.is_float();
    case BinaryOp::eq:
    case BinaryOp::ne:
      return true;
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::gt:
    case BinaryOp::ge:
      return !type.is_bool();
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
      return type.is_bool();
  }
  return false;
}

bool accepts(UnaryOp op, DType type) {
  if (op == UnaryOp::logical_not) return type.is_bool();
  return op == UnaryOp::bit_not ? type.is_int() : !type.is_bool();
}

std::string operator_type(const Expr& e, const Surroundings&) {
  if (const auto* n = as<Binary>(e); n && !accepts(n->op, n->left->type)) {
    return fmt::format("`{}` does not take {}", to_string(n->op), to_string(n->left->type));
  }
  if (const auto* n = as<Unary>(e); n && !accepts(n->op, n->operand->type)) {
    return fmt::format("`{}` does not take {}", to_string(n->op), to_string(n->operand->type));
  }
  return {};
}

std::string math_argument(const Expr& e, const Surroundings&) {
  const auto* n = as<Math>(e);
  if (!n) return {};
  const DType type = n->argument->type;
  const bool counts = n->function == MathFn::leading_zeros || n->function == MathFn::popcount;
  const bool fits =
      counts ? type.is_int() && type.bits >= 32 : type.is_float() || (n->function == MathFn::abs && type.is_int());
  if (fits) return {};
  return fmt::format("`{}` does not take {}", to_string(n->function), to_string(type));
}

// The type that the builders would give.
DType natural_type(const Expr& e) {
  const auto own = [&](const auto&) { return e->type; };
  return std::visit(overloaded{
                        [](const VarRef& n) { return n.var->type; },
                        [](const Load& n) { return n.buffer->type; },
                        [](const Unary& n) { return unary(n.op, n.operand)->type; },
                        [](const Binary& n) { return binary(n.op, n.left, n.right)->type; },
                        [](const Math& n) { return math(n.function, n.argument)->type; },
                        [](const Select& n) { return n.then->type; },
                        own,
                    },
                    e->node);
}

std::string result_type(const Expr& e, const Surroundings&) {
  const DType expected = natural_type(e);
  if (expected == e->type) return {};
  return fmt::format("an expression of type {} says it is {}", to_string(expected), to_string(e->type));
}

std::string literal(const Expr& e, const Surroundings&) {
  if (as<FloatImm>(e) && !e->type.is_float()) return fmt::format("a float literal is {}", to_string(e->type));
  const auto* n = as<IntImm>(e);
  if (!n) return {};
  if (e->type.is_float()) return fmt::format("an integer literal is {}", to_string(e->type));
  if (Bounds{n->value, n->value}.within(type_bounds(e->type))) return {};
  return fmt::format("literal {} does not fit {}", n->value, to_string(e->type));
}

std::string not_bool(const Expr& condition) {
  if (condition->type.is_bool()) return {};
  return fmt::format("a condition is {}", to_string(condition->type));
}
std::string condition(const Expr& e, const Surroundings&) {
  const auto* n = as<Select>(e);
  return n ? not_bool(n->condition) : std::string();
}
std::string conditions(const Stmt& s, const Surroundings&) {
  if (const auto* n = std::get_if<If>(&s->node)) return not_bool(n->condition);
  if (const auto* n = std::get_if<While>(&s->node)) return not_bool(n->condition);
  return {};
}

std::string sides_agree(const Expr& e, const Surroundings&) {
  const auto* n = as<Select>(e);
  if (!n || n->then->type == n->otherwise->type) return {};
  return fmt::format("`select` chooses between {} and {}", to_string(n->then->type), to_string(n->otherwise->type));
}

std::string same_bits(const Expr& e, const Surroundings&) {
  const auto* n = as<Reinterpret>(e);
  if (!n || n->value->type.bits == e->type.bits) return {};
  return fmt::format("`reinterpret` from {} to {}", to_string(n->value->type), to_string(e->type));
}

}  // namespace

const std::vector<Rule>& rules_of_expressions() {
  static const std::vector<Rule> rules{
      {"var_in_scope", "a variable is defined before it is used and in scope there", var_in_scope},
      {"buffer_declared", "a buffer is a parameter or an allocation of its kernel", buffer_declared, buffers_declared},
      {"index_count", "loads and stores have as many indices as their buffer has axes", index_count, index_counts},
      {"index_type", "indices are integers", index_type, index_types},
      {"operands_agree", "both operands have one type", operands_agree},
      {"operator_type", "an operator gets a type that it takes", operator_type},
      {"math_argument", "a function gets floating point, `abs` any number, what counts bits an integer", math_argument},
      {"result_type", "an expression has the type that its parts give", result_type},
      {"literal", "a literal fits its type", literal},
      {"condition", "conditions are bool", condition, conditions},
      {"sides_agree", "both sides of `select` have one type", sides_agree},
      {"same_bits", "`reinterpret` keeps the number of bits", same_bits},
  };
  return rules;
}

}  // namespace tilepilot::ir
