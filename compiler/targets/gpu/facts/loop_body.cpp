#include "compiler/targets/gpu/facts/loop_body.h"

#include "compiler/ir/effects.h"

namespace tilepilot::targets::gpu {

bool is_plain_sum(const ir::Stmt& stmt) {
  const auto* atomic = ir::as<ir::Atomic>(stmt);
  if (!atomic || atomic->op != ir::AtomicOp::add || atomic->order != ir::MemoryOrder::relaxed || atomic->previous)
    return false;
  const ir::BufferData& buffer = *atomic->element.buffer;
  return buffer.scope == ir::Scope::global &&
         (buffer.type == ir::kFloat32 || buffer.type == ir::kFloat16 || buffer.type == ir::kBFloat16);
}

LoopBody::LoopBody(const ir::For& loop, bool adds_vectors) : statements_(ir::statements(loop.body)) {
  for (const ir::Stmt& stmt : statements_) {
    const auto* let = ir::as<ir::Let>(stmt);
    if (let) values_.insert(let->var.get());
    is_straight_ = is_straight_ && (let || ir::as<ir::Store>(stmt) || (adds_vectors && is_plain_sum(stmt)));
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
  const auto* sum = ir::as<ir::Atomic>(statements_.back());
  const bool stored_last = (last && ir::memory_of(last->buffer) == ir::memory_of(buffer)) ||
                           (sum && ir::memory_of(sum->element.buffer) == ir::memory_of(buffer));
  return all.stores == 0 || (all.stores == 1 && (all.loads == 0 || stored_last));
}

}  // namespace tilepilot::targets::gpu
