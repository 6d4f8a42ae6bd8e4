#include "compiler/targets/gpu/facts/conflicting_updates.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/passes/iterations/iteration_conflicts.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

struct AtomicForm {
  ir::AtomicOp op;
  Expr value;
};

// `element = element op value`, whichever operand comes first.
std::optional<AtomicForm> atomic_form(const ir::Store& store) {
  const auto* value = ir::as<ir::Binary>(store.value);
  if (value == nullptr) return std::nullopt;
  const auto is_element = [&](const Expr& expr) {
    const auto* load = ir::as<ir::Load>(expr);
    return load != nullptr && load->buffer == store.buffer &&
           std::equal(load->indices.begin(), load->indices.end(), store.indices.begin(), store.indices.end(),
                      [](const Expr& a, const Expr& b) { return ir::structurally_equal(a, b); });
  };
  const bool first = is_element(value->left), second = is_element(value->right);
  if (first == second || (second && value->op == BinaryOp::sub)) return std::nullopt;
  const Expr& other = first ? value->right : value->left;
  bool reads = false;
  ir::walk(other, [&](const Expr& part) {
    const auto* load = ir::as<ir::Load>(part);
    reads |= load != nullptr && ir::memory_of(load->buffer) == ir::memory_of(store.buffer);
  });
  if (reads) return std::nullopt;
  switch (value->op) {
    case BinaryOp::add:
      return AtomicForm{ir::AtomicOp::add, other};
    case BinaryOp::sub: {
      const Expr zero = other->type.is_float() ? ir::float_imm(0, other->type) : ir::int_imm(0, other->type);
      return AtomicForm{ir::AtomicOp::add, ir::binary(BinaryOp::sub, zero, other, other->span)};
    }
    case BinaryOp::min:
      return AtomicForm{ir::AtomicOp::min, other};
    case BinaryOp::max:
      return AtomicForm{ir::AtomicOp::max, other};
    case BinaryOp::bit_or:
      return AtomicForm{ir::AtomicOp::bit_or, other};
    default:
      return std::nullopt;
  }
}

// The stores that may become atomic operations: all that the loop does to the memory is updates of one kind, since
// those commute.
class AtomicUpdates : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit AtomicUpdates(const Stmt& loop) {
    std::map<const ir::BufferData*, std::set<ir::AtomicOp>> kinds;
    std::map<const ir::BufferData*, int> updates, accesses;
    ir::each_effect(loop, [&](const ir::Buffer& buffer, bool) { ++accesses[ir::memory_of(buffer)]; });
    ir::walk(
        loop,
        [&](const Stmt& part) {
          const auto* store = ir::as<ir::Store>(part);
          const auto form = store ? atomic_form(*store) : std::nullopt;
          if (!form) return;
          kinds[ir::memory_of(store->buffer)].insert(form->op);
          ++updates[ir::memory_of(store->buffer)];
        },
        [](const Expr&) {});
    for (const passes::Update& update : passes::conflicting_updates(loop)) {
      const ir::BufferData* memory = ir::memory_of(update.buffer);
      const bool commute = accesses[memory] == 2 * updates[memory] && kinds[memory].size() == 1;
      if (commute && !is_kept(*update.buffer)) conflicting_.insert(update.store.get());
    }
  }

  Stmt rewrite(const Stmt& stmt) override {
    const auto* store = ir::as<ir::Store>(stmt);
    if (store == nullptr || !conflicting_.contains(stmt.get())) return rewrite_children(stmt);
    const auto form = *atomic_form(*store);
    ir::Region element{store->buffer, store->indices, std::vector<int64_t>(store->indices.size(), 1), stmt->span};
    return ir::make_stmt(ir::Atomic{form.op, std::move(element), form.value}, stmt->span);
  }

 private:
  std::unordered_set<const ir::StmtNode*> conflicting_;

  static bool is_kept(const ir::BufferData& buffer) {
    return buffer.scope == ir::Scope::local || buffer.type.is_nibble();
  }
};

}  // namespace

Stmt with_atomic_updates(const Stmt& stmt) { return AtomicUpdates(stmt).rewrite(stmt); }

std::vector<passes::Update> updates_in_turn(const Stmt& stmt) {
  std::vector<passes::Update> updates = passes::conflicting_updates(with_atomic_updates(stmt));
  std::erase_if(updates, [](const passes::Update& update) { return update.buffer->scope == ir::Scope::local; });
  return updates;
}

Stmt in_turn(const Stmt& stmt) {
  const auto& loop = *ir::as<ir::For>(stmt);
  const std::vector<passes::Update> updates = updates_in_turn(stmt);
  if (updates.empty()) return stmt;
  // Variables of which iterations that differ in them alone update elements of their own: as many as there are.
  const passes::IterationSpace space(loop);
  std::vector<ir::Var> apart;
  for (const ir::Var& var : loop.vars) {
    apart.push_back(var);
    const bool conflict = std::any_of(updates.begin(), updates.end(), [&](const passes::Update& update) {
      return space.may_conflict(update.indices, apart);
    });
    if (conflict) apart.pop_back();
  }
  ir::For inner{ir::LoopKind::parallel, apart, {}, 0, loop.body};
  Stmt serial = loop.body;
  for (size_t axis = loop.vars.size(); axis-- > 0;) {
    const bool is_apart = std::find(apart.begin(), apart.end(), loop.vars[axis]) != apart.end();
    if (is_apart) inner.extents.insert(inner.extents.begin(), loop.extents[axis]);
  }
  if (!apart.empty()) serial = ir::make_stmt(std::move(inner), stmt->span);
  for (size_t axis = loop.vars.size(); axis-- > 0;) {
    if (std::find(apart.begin(), apart.end(), loop.vars[axis]) != apart.end()) continue;
    serial =
        ir::make_stmt(ir::For{ir::LoopKind::serial, {loop.vars[axis]}, {loop.extents[axis]}, 0, serial}, stmt->span);
  }
  if (!apart.empty()) return serial;
  return ir::make_stmt(ir::For{ir::LoopKind::parallel, {ir::make_var("once", ir::kInt32)}, {ir::int_imm(1)}, 0, serial},
                       stmt->span);
}

std::vector<ir::Buffer> jointly_updated_fragments(const ir::For& loop) {
  std::vector<ir::Buffer> fragments;
  const passes::IterationSpace space(loop);
  ir::walk(
      loop.body,
      [&](const Stmt& part) {
        const auto* atomic = ir::as<ir::Atomic>(part);
        if (atomic == nullptr || atomic->element.buffer->scope != ir::Scope::fragment) return;
        const ir::Buffer& buffer = atomic->element.buffer;
        if (std::find(fragments.begin(), fragments.end(), buffer) == fragments.end() &&
            space.may_conflict(atomic->element.start))
          fragments.push_back(buffer);
      },
      [](const Expr&) {});
  return fragments;
}

}  // namespace tilepilot::targets::gpu
