#include "compiler/targets/gpu/facts/loop_body.h"

#include "compiler/ir/effects.h"

namespace tilepilot::targets::gpu {

LoopBody::LoopBody(const ir::For& loop) : statements_(ir::statements(loop.body)) {
  for (const ir::Stmt& stmt : statements_) {
    const auto* let = ir::as<ir::Let>(stmt);
    if (let) values_.insert(let->var.get());
    is_straight_ = is_straight_ && (let || ir::as<ir::Store>(stmt));
    ir::each_effect(stmt, [&](const ir::Buffer& buffer, bool writes) {
      Count& count = counts_[ir::memory_of(buffer)];
      ++(writes ? count.stores : count.loads);
    });
  }
}

bool LoopBody::is_written(const ir::Expr& expr) const {
  bool found = false;
  ir::each_effect(expr, [&](const ir::Buffer& buffer, bool) { found = found || count(buffer).stores > 0; });
  return found;
}

LoopBody::Count LoopBody::count(const ir::Buffer& buffer) const {
  const auto found = counts_.find(ir::memory_of(buffer));
  return found == counts_.end() ? Count{} : found->second;
}

int LoopBody::accesses(const ir::Buffer& buffer) const {
  const Count all = count(buffer);
  return all.loads + all.stores;
}

bool LoopBody::may_move_together(const ir::Buffer& buffer) const {
  if (!is_straight_ || statements_.empty()) return false;
  const Count all = count(buffer);
  const auto* last = ir::as<ir::Store>(statements_.back());
  const bool stored_last = last && ir::memory_of(last->buffer) == ir::memory_of(buffer);
  return all.stores == 0 || (all.stores == 1 && (all.loads == 0 || stored_last));
}

}  // namespace tilepilot::targets::gpu
