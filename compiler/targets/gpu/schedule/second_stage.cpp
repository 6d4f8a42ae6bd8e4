#include "compiler/targets/gpu/schedule/second_stage.h"

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

using ir::Stmt;

namespace {

int64_t bytes_of(const ir::Buffer& tile) {
  int64_t bits = tile->type.bits;
  for (const ir::Expr& extent : tile->shape) bits *= ir::constant_int(extent).value_or(1);
  return (bits + 7) / 8;
}

bool has_one_stage(const Stmt& stmt) { return is_pipelined(stmt) && ir::as<ir::For>(stmt)->num_stages <= 1; }

class SecondStages : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& stmt) override {
    const Stmt inner = rewrite_children(stmt);
    if (!has_one_stage(inner)) return inner;
    ir::For loop = *ir::as<ir::For>(inner);
    loop.num_stages = 2;
    return ir::make_stmt(std::move(loop), stmt->span);
  }
};

}  // namespace

ir::Kernel with_second_stages(const ir::Kernel& kernel, const Machine& machine) {
  if (!machine.has_tma || !ir::contains(kernel.body, has_one_stage)) return kernel;
  // What spills already has no registers for more.
  if (registers_of_fragments(kernel) + kOverheadRegisters > registers_of_thread(thread_count(kernel))) return kernel;
  int64_t all = 0, more = 0;
  for (const ir::Buffer& buffer : kernel.allocations)
    if (buffer->scope == ir::Scope::shared && !buffer->base) all += bytes_of(buffer);
  ir::BufferSet loaded;
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        if (!has_one_stage(stmt)) return;
        for (const Stmt& part : ir::statements(ir::as<ir::For>(stmt)->body)) {
          const auto* copy = ir::as<ir::Copy>(part);
          if (copy == nullptr || copy->source.buffer->scope != ir::Scope::global) continue;
          const ir::Buffer& tile = copy->destination.buffer;
          if (tile->scope == ir::Scope::shared && loaded.insert(tile.get()).second) more += bytes_of(tile);
        }
      },
      [](const ir::Expr&) {});
  const int64_t blocks = machine.shared_bytes / std::max<int64_t>(1, all);
  const int64_t limit = blocks < 2 ? machine.block_shared_bytes : machine.shared_bytes / std::min<int64_t>(blocks, 2);
  if (more == 0 || all + more > limit) return kernel;
  ir::Kernel result = kernel;
  result.body = SecondStages().rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
