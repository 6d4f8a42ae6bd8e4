#include "compiler/targets/cpu/loops/private_buffers.h"

#include "compiler/passes/iterations/definite_assignment.h"
#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {
namespace {

bool has_one_iteration(const ir::For& loop) {
  return std::all_of(loop.extents.begin(), loop.extents.end(),
                     [](const ir::Expr& extent) { return ir::constant_int(extent) == 1; });
}

// How often statements name the buffer's elements one by one, and all iterations the same; others know it as a place in
// memory, or have elements of their own there.
int64_t element_uses(const std::vector<Access>& all, const ir::BufferData* buffer, const std::vector<ir::Var>& vars) {
  return std::count_if(all.begin(), all.end(), [&](const Access& access) {
    return access.buffer.get() == buffer &&
           std::none_of(vars.begin(), vars.end(), [&](const ir::Var& var) { return mentions(access.indices, var); });
  });
}

}  // namespace

ir::BufferSet find_private_buffers(const ir::Kernel& kernel, const c::IntegerFacts& facts,
                                   const std::unordered_map<const ir::BufferData*, int64_t>& uses) {
  ir::BufferSet found;
  const ir::BufferSet sharing = ir::sharing_buffers(kernel);
  const auto visit_loop = [&](const ir::For& loop) {
    const std::vector<Access> accessed = accesses(facts, loop.body);
    for (const ir::Buffer& buffer : kernel.allocations) {
      const auto all = uses.find(buffer.get());
      if (buffer->scope != ir::Scope::local || sharing.contains(buffer.get()) || all == uses.end()) continue;
      if (element_uses(accessed, buffer.get(), loop.vars) != all->second) continue;
      if (passes::writes_before_reading(loop, buffer)) found.insert(buffer.get());
    }
  };
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        const auto* loop = std::get_if<ir::For>(&stmt->node);
        if (loop == nullptr || (loop->kind != ir::LoopKind::parallel && loop->kind != ir::LoopKind::vectorized)) return;
        if (!has_one_iteration(*loop)) visit_loop(*loop);
      },
      [](const ir::Expr&) {});
  return found;
}

void declare_private_buffers(c::Context& context, const ir::Stmt& body) {
  ir::BufferSet declared;
  for (const Access& access : accesses(context.facts, body)) {
    const ir::Buffer& buffer = access.buffer;
    if (!context.iteration_private.contains(buffer.get()) || !declared.insert(buffer.get()).second) continue;
    int64_t elements = 1;
    for (const int64_t extent : c::extents(buffer)) elements *= extent;
    context.body.line("{} {}[{}];", c::stored_type(buffer->type), context.names.of(buffer), elements);
  }
}

}  // namespace tilepilot::targets::cpu
