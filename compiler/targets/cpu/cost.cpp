#include "compiler/targets/cpu/cost.h"

#include "compiler/ir/visit.h"

namespace tilepilot::targets::cpu {
namespace {

int64_t cost(const ir::Expr& expr) {
  return std::visit(
      ir::overloaded{
          [](const ir::Load&) -> int64_t { return 1; },
          [](const ir::Unary& node) { return 1 + cost(node.operand); },
          [](const ir::Binary& node) { return 1 + cost(node.left) + cost(node.right); },
          [](const ir::Math& node) { return 20 + cost(node.argument); },
          [](const ir::Select& node) { return 2 + cost(node.condition) + cost(node.then) + cost(node.otherwise); },
          [](const ir::Cast& node) { return 1 + cost(node.value); },
          [](const ir::Reinterpret& node) { return 1 + cost(node.value); },
          [](const auto&) -> int64_t { return 0; },
      },
      expr->node);
}

}  // namespace

int64_t cost(const std::vector<ir::Stmt>& statements) {
  int64_t sum = 0;
  for (const ir::Stmt& stmt : statements)
    ir::walk(
        stmt,
        [&](const ir::Stmt& part) {
          if (const auto* store = std::get_if<ir::Store>(&part->node)) sum += 1 + cost(store->value);
          if (const auto* let = std::get_if<ir::Let>(&part->node)) sum += cost(let->value);
          if (const auto* branch = std::get_if<ir::If>(&part->node)) sum += 2 + cost(branch->condition);
        },
        [](const ir::Expr&) {});
  return sum;
}

}  // namespace tilepilot::targets::cpu
