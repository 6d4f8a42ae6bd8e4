#include "compiler/targets/cpu/loops/cost.h"

#include <algorithm>

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

constexpr int64_t kUnknown = INT64_MAX;

int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return a == kUnknown || b == kUnknown || __builtin_mul_overflow(a, b, &product) ? kUnknown : product;
}

int64_t plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  return a == kUnknown || b == kUnknown || __builtin_add_overflow(a, b, &sum) ? kUnknown : sum;
}

int64_t elements(const ir::Region& region) {
  int64_t count = 1;
  for (const int64_t extent : region.extent) count = times(count, extent);
  return count;
}

int64_t iterations(const ir::For& loop) {
  int64_t count = 1;
  for (const ir::Expr& extent : loop.extents)
    count = times(count, std::max<int64_t>(0, ir::constant_int(extent).value_or(kUnknown)));
  return count;
}

}  // namespace

int64_t most_operations(const ir::Stmt& stmt) {
  constexpr int64_t kAtomic = 20;
  return std::visit(
      ir::overloaded{
          [](const ir::Block& block) {
            int64_t sum = 0;
            for (const ir::Stmt& part : block.body) sum = plus(sum, most_operations(part));
            return sum;
          },
          [](const ir::For& loop) { return times(iterations(loop), plus(1, most_operations(loop.body))); },
          [](const ir::If& branch) {
            const int64_t then = most_operations(branch.then);
            const int64_t otherwise = branch.otherwise ? most_operations(branch.otherwise) : 0;
            return plus(2 + cost(branch.condition), std::max(then, otherwise));
          },
          [](const ir::Let& let) { return 1 + cost(let.value); },
          [](const ir::Store& store) { return 1 + cost(store.value); },
          [](const ir::Copy& copy) { return times(2, elements(copy.destination)); },
          [](const ir::Fill& fill) { return elements(fill.destination); },
          [](const ir::Reduce& reduce) { return times(2, elements(reduce.source)); },
          [](const ir::Gemm& gemm) { return times(elements(gemm.a), 2 * gemm.c.extent.back()); },
          [](const ir::Atomic&) { return kAtomic; },
          [](const ir::Check& check) { return 1 + cost(check.condition); },
          [](const ir::Sync& sync) { return sync.scope == ir::SyncScope::block ? int64_t{1} : kUnknown; },
          [](const ir::Break&) { return int64_t{1}; },
          [](const ir::Continue&) { return int64_t{1}; },
          [](const auto&) { return kUnknown; },
      },
      stmt->node);
}

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
