#include "compiler/targets/gpu/shared/proxy_fences.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/threads/thread_differences.h"

namespace tilepilot::targets::gpu {

using ir::Stmt;

namespace {

bool writes_shared(const Stmt& stmt) {
  return ir::contains(stmt, [&](const Stmt& part) {
    const auto* copy = ir::as<ir::Copy>(part);
    if (copy && copy->mode == ir::CopyMode::bulk_load) return false;
    bool found = false;
    ir::each_own_effect(part, [&](const ir::Buffer& buffer, bool writes) {
      found |= writes && ir::memory_of(buffer)->scope == ir::Scope::shared;
    });
    return found;
  });
}

// Whether other threads continue after this: it is a barrier of all, or an arrival at a hardware barrier. Copies of a
// pipeline, which one thread announces, follow a barrier.
bool tells_others(const Stmt& stmt) {
  const auto* sync = ir::as<ir::Sync>(stmt);
  const auto* barrier = ir::as<ir::Barrier>(stmt);
  const auto* async = ir::as<ir::Async>(stmt);
  return (sync && (sync->scope == ir::SyncScope::block || sync->scope == ir::SyncScope::cluster)) ||
         (async && async->op == ir::AsyncOp::arrive_cluster) ||
         (barrier && barrier->op != ir::BarrierOp::wait && barrier->op != ir::BarrierOp::expect &&
          barrier->threads != 1);
}

class Fences {
 public:
  explicit Fences(const ScratchBuffers& scratch_buffers) : scratch_buffers_(scratch_buffers) {}

  // `unseen`: threads may have written what is not fenced yet.
  Stmt fenced(const Stmt& stmt, bool& unseen) {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      std::vector<Stmt> out;
      for (const Stmt& part : list->body) {
        if (unseen && (tells_others(part) || scratch_buffers_.contains(part.get()))) {
          out.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::fence, 0}, part->span));
          unseen = false;
        }
        out.push_back(fenced(part, unseen));
      }
      return ir::make_stmt(ir::Block{std::move(out)}, stmt->span);
    }
    if (const auto* loop = ir::as<ir::For>(stmt); loop && loop->kind != ir::LoopKind::parallel) {
      ir::For result = *loop;
      result.body = fenced_loop(loop->body, unseen);
      return ir::make_stmt(std::move(result), stmt->span);
    }
    if (const auto* loop = ir::as<ir::While>(stmt))
      return ir::make_stmt(ir::While{loop->condition, fenced_loop(loop->body, unseen)}, stmt->span);
    if (const auto* choice = ir::as<ir::If>(stmt)) {
      bool other = unseen;
      const Stmt then = fenced(choice->then, unseen);
      const Stmt otherwise = choice->otherwise ? fenced(choice->otherwise, other) : nullptr;
      unseen = unseen || other;
      return ir::make_stmt(ir::If{choice->condition, then, otherwise}, stmt->span);
    }
    if (passes::is_jump(stmt)) {
      unseen_at_jumps_ |= std::exchange(unseen, false);
      return stmt;
    }
    const auto* async = ir::as<ir::Async>(stmt);
    const bool arrive = async && async->op == ir::AsyncOp::wait_copies;  // the threads' own asynchronous copies
    unseen = unseen || arrive || writes_shared(stmt);
    return stmt;
  }

 private:
  const ScratchBuffers& scratch_buffers_;  // of statements with barriers of their own

  bool unseen_at_jumps_ = false;  // of the loop that encloses the place

  Stmt fenced_loop(const Stmt& body, bool& unseen) {
    const bool outside = std::exchange(unseen_at_jumps_, false);
    bool first = unseen;
    fenced(body, first);  // what an iteration leaves behind is there when the next one begins
    bool around = unseen || first || unseen_at_jumps_;
    Stmt inner = fenced(body, around);
    unseen = unseen || around || std::exchange(unseen_at_jumps_, outside);
    return inner;
  }
};

}  // namespace

bool uses_async_proxy(const ir::Kernel& kernel, const Inference& inference) {
  const auto& gemms = inference.gemms;
  return std::any_of(gemms.begin(), gemms.end(), [](const auto& entry) { return entry.second.is_wgmma(); }) ||
         ir::contains(kernel.body, [](const Stmt& stmt) {
           const auto* copy = ir::as<ir::Copy>(stmt);
           return copy && (copy->mode == ir::CopyMode::bulk_load || copy->mode == ir::CopyMode::bulk_store);
         });
}

ir::Kernel place_fences(const ir::Kernel& kernel, const ScratchBuffers& scratch_buffers) {
  ir::Kernel result = kernel;
  bool unseen = false;
  result.body = Fences(scratch_buffers).fenced(kernel.body, unseen);
  return result;
}

}  // namespace tilepilot::targets::gpu
