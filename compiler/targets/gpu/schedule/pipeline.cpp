#include "compiler/targets/gpu/schedule/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/effects.h"
#include "compiler/ir/replace_buffers.h"
#include "compiler/ir/search.h"
#include "compiler/passes/algebra/assumptions.h"
#include "compiler/passes/algebra/simplify.h"
#include "compiler/passes/grid_sync.h"
#include "compiler/passes/iterations/iteration_variables.h"
#include "compiler/passes/pack_nibbles.h"
#include "compiler/passes/threads/thread_fragments.h"
#include "compiler/passes/threads/thread_private_loops.h"
#include "compiler/passes/threads/thread_sync.h"
#include "compiler/passes/threads/uniformity.h"
#include "compiler/targets/gpu/facts/element_copies.h"
#include "compiler/targets/gpu/facts/if_conversion.h"
#include "compiler/targets/gpu/facts/loop_body.h"
#include "compiler/targets/gpu/facts/loop_unswitching.h"
#include "compiler/targets/gpu/facts/stored_values.h"
#include "compiler/targets/gpu/facts/unrolled_parts.h"
#include "compiler/targets/gpu/layout/normalize.h"
#include "compiler/targets/gpu/layout/tile_sources.h"
#include "compiler/targets/gpu/schedule/async_gemms.h"
#include "compiler/targets/gpu/schedule/deferred_reductions.h"
#include "compiler/targets/gpu/schedule/first_clear.h"
#include "compiler/targets/gpu/schedule/software_pipeline.h"
#include "compiler/targets/gpu/schedule/tma_stores.h"
#include "compiler/targets/gpu/shared/barriers.h"
#include "compiler/targets/gpu/shared/proxy_fences.h"
#include "compiler/targets/gpu/shared/scratch.h"

namespace tilepilot::targets::gpu {
namespace {

// Rounds of staging: a conflict may leave another one behind, never more than a few. What shuffles do not settle soon
// goes through shared memory.
constexpr int kMostStagings = 8, kLastByShuffles = 2;

// Where a program says itself when tiles are full and empty, copies must not run further ahead than it says.
class InOrder : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const ir::Stmt inner = rewrite_children(stmt);
    const auto* loop = ir::as<ir::For>(inner);
    if (loop == nullptr || loop->kind != ir::LoopKind::pipelined) return inner;
    return ir::make_stmt(ir::For{ir::LoopKind::serial, loop->vars, loop->extents, 0, loop->body}, stmt->span);
  }
};

// Fragments of which threads name elements, outside parallel loops, that are known only when the kernel runs, or that
// say which way all threads go.
void add_named_by_element(const ir::Kernel& kernel, std::unordered_set<const ir::BufferData*>& fragments) {
  const bool simt = !kernel.thread_vars.empty();
  const auto note = [&](const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
    const bool constant = std::all_of(indices.begin(), indices.end(),
                                      [](const auto& index) { return ir::constant_int(index).has_value(); });
    if (simt || !constant) fragments.insert(buffer.get());
  };
  const auto in_expr = [&](const ir::Expr& part) {
    if (const auto* load = ir::as<ir::Load>(part)) note(load->buffer, load->indices);
  };
  const auto in_control = [&](const ir::Expr& expr) {
    ir::each_effect(expr, [&](const ir::Buffer& buffer, bool) { fragments.insert(buffer.get()); });
  };
  std::function<void(const ir::Stmt&)> enter = [&](const ir::Stmt& stmt) {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      for (const ir::Stmt& part : list->body) enter(part);
    } else if (const auto* loop = ir::as<ir::For>(stmt)) {
      for (const ir::Expr& extent : loop->extents) in_control(extent);
      if (loop->kind != ir::LoopKind::parallel) enter(loop->body);
    } else if (const auto* loop_while = ir::as<ir::While>(stmt)) {
      in_control(loop_while->condition);
      enter(loop_while->body);
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      in_control(choice->condition);
      enter(choice->then);
      if (choice->otherwise) enter(choice->otherwise);
    } else {
      ir::walk(
          stmt,
          [&](const ir::Stmt& part) {
            if (const auto* store = ir::as<ir::Store>(part)) note(store->buffer, store->indices);
            if (const auto* atomic = ir::as<ir::Atomic>(part)) note(atomic->element.buffer, atomic->element.start);
            if (const auto* reduce = ir::as<ir::AllReduce>(part)) note(reduce->result.buffer, reduce->result.start);
          },
          in_expr);
    }
  };
  enter(kernel.body);
}

// Fragments that are seen as other types lie in shared memory, where a view is only another name; so do those whose
// elements are named one by one, and those of other shapes that threads cannot hold (`unreshaped`).
ir::Kernel share_some_fragments(const ir::Kernel& kernel, const std::vector<ir::Buffer>& unreshaped) {
  std::unordered_set<const ir::BufferData*> shared;
  add_named_by_element(kernel, shared);
  for (const ir::Buffer& buffer : unreshaped) shared.insert(buffer.get());
  for (const ir::Buffer& buffer : kernel.allocations)
    if (buffer->base && buffer->base->type != buffer->type) shared.insert(buffer->base.get());
  // All names of one memory.
  for (const ir::Buffer& buffer : kernel.allocations)
    if (buffer->base && shared.contains(buffer.get())) shared.insert(buffer->base.get());
  for (const ir::Buffer& buffer : kernel.allocations)
    if (buffer->base && shared.contains(buffer->base.get())) shared.insert(buffer.get());
  ir::Replacements by;
  for (const ir::Buffer& buffer : kernel.allocations)
    if (buffer->scope == ir::Scope::fragment && shared.contains(buffer.get()))
      by.emplace(buffer.get(), ir::as_shared(buffer, by));
  return ir::replace_buffers(kernel, by);
}

// Loops that name one part of a fragment after the other are written out where the parts then lie in registers.
void unroll_parts(ir::Kernel& kernel, Inference& inference, const Machine& machine) {
  std::vector<ir::Stmt> statements;
  for (const Inference::Conflict& conflict : inference.conflicts) statements.push_back(conflict.stmt);
  const auto unrolled = with_parts_unrolled(kernel, statements);
  if (!unrolled) return;
  Inference other = infer_layouts(*unrolled, machine);
  if (other.conflicts.size() >= inference.conflicts.size()) return;
  kernel = *unrolled;
  inference = std::move(other);
}

// From copies as loops and their layouts on. `inference` is that of `kernel`.
Result<PlannedKernel> finish(ir::Kernel kernel, Inference inference, const PipelinedKernel& pipelined,
                             const Machine& machine, const WarpRole& role) {
  PlannedKernel planned{std::move(kernel), std::move(inference), {}, pipelined.notes, role.sync, role.persistent};
  planned.decisions = pipelined.decisions;
  planned.decisions.insert(planned.decisions.end(), role.decisions.begin(), role.decisions.end());
  unroll_parts(planned.kernel, planned.inference, machine);
  for (int staging = 0; !planned.inference.conflicts.empty(); ++staging) {
    const Inference::Conflict& first = planned.inference.conflicts.front();
    if (staging == kMostStagings)
      return make_error(DiagnosticKind::unsupported_tile_feature, first.stmt->span,
                        "`" + first.buffer->name + "`: " + first.why, "keep it in shared memory: `T.alloc_shared`");
    for (auto& conflict : planned.inference.conflicts) {
      if (staging >= kLastByShuffles) conflict.shuffles = -1;
      const std::string way = conflict.shuffles < 0
                                  ? "goes through shared memory"
                                  : fmt::format("changes lanes by {} shuffles of each thread", conflict.shuffles);
      planned.notes.emplace_back(conflict.stmt->span,
                                 fmt::format("`{}` {}: {}", conflict.buffer->name, way, conflict.why));
    }
    planned.kernel = stage_conflicts(planned.kernel, planned.inference.conflicts);
    planned.inference = infer_layouts(planned.kernel, machine);
  }
  const std::vector<Decision>& weighed = planned.inference.decisions;
  planned.decisions.insert(planned.decisions.end(), weighed.begin(), weighed.end());
  planned.inference.compact_scratch = role.low_memory;
  allocate_reduction_scratch(planned.kernel, planned.inference);
  allocate_split_gemm_scratch(planned.kernel, planned.inference);
  ir::Kernel own = planned.kernel;
  std::erase_if(own.allocations, [&](const ir::Buffer& buffer) { return role.common.contains(buffer.get()); });
  planned.arena = arrange_tiles(own, planned.inference, role.lasting);
  std::vector<ir::Buffer> rings = pipelined.rings;
  rings.insert(rings.end(), role.rings.begin(), role.rings.end());
  planned.kernel = place_barriers(
      planned.kernel, rings, planned.inference.scratch_buffers,
      [&](const ir::BufferData* a, const ir::BufferData* b) { return planned.arena.share(a, b); }, role.sync);
  planned.async_proxy = uses_async_proxy(planned.kernel, planned.inference);
  if (planned.async_proxy) planned.kernel = place_fences(planned.kernel, planned.inference.scratch_buffers);
  return planned;
}

}  // namespace

Result<ir::Program> prepare(const ir::Program& program) {
  ir::Program current = passes::iteration_variables(passes::collect_assumptions(TRY(passes::grid_sync(program))));
  current = passes::thread_sync(passes::thread_fragments(current));
  // Before tile operators on packed elements become loops of all threads together.
  for (ir::Kernel& kernel : current.kernels)
    if (!kernel.thread_vars.empty() || ir::contains<ir::Roles>(kernel.body))
      kernel.body = passes::thread_private_loops(kernel.body);
  for (const ir::Kernel& kernel : current.kernels) TRY(passes::check_thread_stores(kernel));
  for (ir::Kernel& kernel : current.kernels)
    kernel = unswitch_loops(with_stored_values(with_if_conversion(with_lanes_of_sums(kernel))));
  current = passes::simplify(current);
  for (ir::Kernel& kernel : current.kernels)
    kernel = with_deferred_reductions(
        with_copied_sources(with_clears_in_gemms(with_clears_first(with_box_copies(with_values_in_indices(kernel))))));
  return passes::pack_nibbles_side_by_side(current);
}

namespace {

// `unreshaped`: see Inference. They are put into shared memory, and new ones are added.
Result<PlannedKernel> plan_once(const ir::Kernel& given, const Machine& machine, const WarpRole& given_role,
                                std::vector<ir::Buffer>& unreshaped) {
  ir::Kernel kernel = share_some_fragments(given, unreshaped);
  WarpRole role = given_role;
  const bool waits_itself = role.sync.threads != 0 || ir::contains<ir::Barrier>(kernel.body);
  if (!role.specialized) {
    ManualAsynchrony own = keep_asynchrony(kernel, machine, role.sync, role.block ? *role.block : whole_block(kernel));
    if (own.error) return std::move(own.error);
    kernel = std::move(own.kernel);
    role.lasting = std::move(own.tiles);
    role.decisions.insert(role.decisions.end(), own.decisions.begin(), own.decisions.end());
  }
  if (waits_itself) kernel.body = InOrder().rewrite(kernel.body);
  PipelinedKernel pipelined = pipeline_loops(kernel, machine);
  pipelined.kernel = with_async_gemms(pipelined.kernel, machine, pipelined.decisions);
  kernel = normalize(pipelined.kernel);
  Inference inference = infer_layouts(kernel, machine);
  if (!inference.unreshaped.empty() && unreshaped.size() <= given.allocations.size()) {
    unreshaped.insert(unreshaped.end(), inference.unreshaped.begin(), inference.unreshaped.end());
    return plan_once(given, machine, given_role, unreshaped);
  }
  // The tiles of roles lie side by side: where not all fit, those that a program does not name are dropped first.
  const bool has_room = !role.low_memory || role.sync.threads == 0 || role.specialized;
  if (machine.has_tma && has_room) {
    const StoreOptions options{role.persistent, role.low_memory, role.sync};
    if (const auto stored = store_by_tma(pipelined.kernel, inference, options, pipelined.decisions)) {
      const ir::Kernel through_tiles = normalize(*stored);
      Inference there = infer_layouts(through_tiles, machine);
      auto planned = finish(through_tiles, std::move(there), pipelined, machine, role);
      if (planned.ok() && planned->arena.bytes <= machine.block_shared_bytes) return planned;
    }
  }
  return finish(std::move(kernel), std::move(inference), pipelined, machine, role);
}

}  // namespace

Result<PlannedKernel> plan_kernel(const ir::Kernel& kernel, const Machine& machine, const WarpRole& role) {
  std::vector<ir::Buffer> unreshaped;
  return plan_once(kernel, machine, role, unreshaped);
}

}  // namespace tilepilot::targets::gpu
