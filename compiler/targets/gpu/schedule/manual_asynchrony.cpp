#include "compiler/targets/gpu/schedule/manual_asynchrony.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/c/integer_facts.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/machine/tma_rules.h"
#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

using ir::AsyncOp;
using ir::CopyMode;
using ir::Stmt;

namespace {

class KeepAsynchrony : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  KeepAsynchrony(ManualAsynchrony& result, const Machine& machine, const ir::Sync& sync, const WholeBlock& block)
      : result_(result),
        machine_(machine),
        sync_(sync),
        viewed_(block.viewed),
        written_(block.written),
        apart_(block.apart),
        threads_(thread_count(result.kernel)) {
    facts_.learn(result.kernel);
    const auto find = [&](const Stmt& stmt) {
      if (const auto* copy = ir::as<ir::Copy>(stmt); copy && why_not(*copy).empty()) modes_.insert(copy->mode);
      const auto* barrier = ir::as<ir::Barrier>(stmt);
      counts_copies_ |= barrier && barrier->op == ir::BarrierOp::arrive_copied;
    };
    ir::walk(result.kernel.body, find, [](const ir::Expr&) {});
    if (counts_copies_) modes_.erase(CopyMode::group);
  }

  Stmt rewrite(const Stmt& stmt) override {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      note_told(list->body);
      tell_empty_groups(list->body);
    }
    if (const auto* copy = ir::as<ir::Copy>(stmt); copy && copy->peer) return rewrite_remote(stmt, *copy);
    if (const auto* copy = ir::as<ir::Copy>(stmt); copy && copy->multicast != 0) return rewrite_shared(stmt, *copy);
    if (const auto* copy = ir::as<ir::Copy>(stmt); copy && copy->mode != CopyMode::complete)
      return rewrite_copy(stmt, *copy);
    if (const auto* gemm = ir::as<ir::Gemm>(stmt); gemm && gemm->asynchronous) return rewrite_gemm(stmt, *gemm);
    if (const auto* async = ir::as<ir::Async>(stmt); async && !has_use(async->op)) {
      if (async->op == AsyncOp::raise_registers || async->op == AsyncOp::lower_registers)
        decide(stmt->span, "registers of threads", "as they are",
               machine_.reallocates_registers ? "not for whole warpgroups" : machine_.target + " deals them out once");
      return ir::make_stmt(ir::Block{{}}, stmt->span);
    }
    return rewrite_children(stmt);
  }

  // What comes before all of it.
  const std::vector<Stmt>& beginning() const { return beginning_; }

 private:
  ManualAsynchrony& result_;
  const Machine& machine_;
  const ir::Sync sync_;
  const std::unordered_set<const ir::BufferData*>& viewed_;
  const std::unordered_set<const ir::BufferData*>& written_;
  const std::unordered_set<const ir::BufferData*>& apart_;
  const int64_t threads_;
  c::IntegerFacts facts_;
  std::unordered_set<CopyMode> modes_;  // of copies that run on
  bool counts_copies_ = false;          // barriers count copies of mode `group`
  std::vector<Stmt> beginning_;
  std::unordered_set<const ir::StmtNode*> told_by_each_;  // loads after which each thread itself arrives

  void note_told(const std::vector<Stmt>& list) {
    for (size_t k = 0; k < list.size(); ++k) {
      const auto* copy = ir::as<ir::Copy>(list[k]);
      if (copy == nullptr || !copy->barrier) continue;
      const auto next = std::find_if(list.begin() + static_cast<ptrdiff_t>(k), list.end(),
                                     [](const Stmt& stmt) { return ir::as<ir::Copy>(stmt) == nullptr; });
      const auto* barrier = next == list.end() ? nullptr : ir::as<ir::Barrier>(*next);
      if (barrier && barrier->op == ir::BarrierOp::arrive && barrier->barrier.buffer == copy->barrier->buffer)
        told_by_each_.insert(list[k].get());
    }
  }

  // A wait for all groups but the last few counts these, too, and waits for more copies than was meant.
  void tell_empty_groups(const std::vector<Stmt>& list) {
    const auto closes = [](const Stmt& stmt) {
      const auto* async = ir::as<ir::Async>(stmt);
      return async != nullptr && async->op == AsyncOp::commit_copies;
    };
    for (size_t k = 1; k < list.size(); ++k)
      if (closes(list[k]) && closes(list[k - 1]) && has_use(AsyncOp::commit_copies))
        decide(list[k]->span, "`T.ptx_commit_group`", "a group without copies",
               "each `T.async_copy` closes a group of its own");
  }

  // Waits of copies that are all done at once have nothing to wait for.
  bool has_use(AsyncOp op) const {
    switch (op) {
      case AsyncOp::commit_copies:
      case AsyncOp::wait_copies:
        return modes_.contains(CopyMode::group);
      case AsyncOp::commit_stores:
      case AsyncOp::wait_stores:
        return modes_.contains(CopyMode::bulk_store);
      case AsyncOp::raise_registers:
      case AsyncOp::lower_registers:  // by whole warpgroups
        return machine_.reallocates_registers && threads_ % 128 == 0;
      default:
        return true;
    }
  }

  // Why a copy cannot run on beside the threads; "" if it can.
  std::string why_not(const ir::Copy& copy) const {
    const ir::BufferData &from = *copy.source.buffer, &to = *copy.destination.buffer;
    if (copy.mode == CopyMode::complete) return "it is complete";
    if (copy.mode == CopyMode::group) {
      if (counts_copies_) return "a barrier counts it";
      if (from.scope != ir::Scope::global || to.scope != ir::Scope::shared)
        return "it does not go from a tensor to shared memory";
      if (from.type != to.type || from.type.is_nibble()) return "its elements change on the way";
      return viewed_.contains(&to) ? fmt::format("`{}` is seen as another type or shape", to.name) : "";
    }
    if (!machine_.has_tma) return fmt::format("not TMA: {} has none", machine_.target);
    if (copy.mode == CopyMode::bulk_load && written_.contains(&from))
      return fmt::format("not TMA: the kernel writes `{}`", from.name);
    const std::string why = tma_part_obstacle(copy, viewed_);
    return why.empty() || is_bulk_copy(copy) ? "" : "not TMA: " + why;
  }

  bool is_inside(const ir::Region& region) const {
    for (size_t axis = 0; axis < region.start.size(); ++axis) {
      const ir::Expr &first = region.start[axis], &extent = region.buffer->shape[axis];
      const ir::Expr last =
          ir::binary(ir::BinaryOp::add, first, ir::int_imm(region.extent[axis] - 1, first->type), first->span);
      if (!facts_.is_never_negative(first) || !facts_.in_bounds(last, extent)) return false;
    }
    return true;
  }

  // As consecutive bytes, without a description of the tensor: tiles of one row, and what no box fits.
  bool is_bulk_copy(const ir::Copy& copy) const {
    const bool loads = copy.mode == CopyMode::bulk_load;
    const ir::Region &tensor = loads ? copy.source : copy.destination, &tile = loads ? copy.destination : copy.source;
    if (copy.multicast != 0 || tensor.buffer->scope != ir::Scope::global || tile.buffer->scope != ir::Scope::shared)
      return false;
    const bool linear = viewed_.contains(tile.buffer.get()) || !apart_.contains(ir::memory_of(tile.buffer));
    if (!is_one_row(*tile.buffer) && (!linear || tma_part_obstacle(copy, viewed_).empty())) return false;
    return bulk_copy_obstacle(copy).empty() && is_inside(tensor);
  }

  void decide(Span span, std::string what, std::string chosen, std::string obstacle) {
    result_.decisions.push_back({span, std::move(what), std::move(chosen), {}});
    if (!obstacle.empty()) result_.decisions.back().obstacles.push_back(std::move(obstacle));
  }

  Stmt rewrite_copy(const Stmt& stmt, const ir::Copy& copy) {
    const Span span = stmt->span;
    const bool loads = copy.mode != CopyMode::bulk_store;
    const std::string what = name_of_copy(copy.source.buffer, copy.destination.buffer), why = why_not(copy);
    if (!why.empty()) {
      decide(span, what, "at once, by the threads", why);
      ir::Copy now = copy;
      now.mode = CopyMode::complete;
      now.barrier.reset();
      const Stmt done = ir::make_stmt(std::move(now), span);
      // One thread may tell others that the tile is there.
      const bool syncs = copy.mode == CopyMode::bulk_load && !told_by_each_.contains(stmt.get());
      return syncs ? block({done, ir::make_stmt(sync_, span)}, span) : done;
    }
    result_.tiles.insert(ir::memory_of(loads ? copy.destination.buffer : copy.source.buffer));
    ir::Copy kept = copy;
    kept.in_line = copy.mode != CopyMode::group && is_bulk_copy(copy);
    const Stmt placed = kept.in_line ? ir::make_stmt(std::move(kept), span) : stmt;
    if (copy.mode == CopyMode::bulk_store && is_bulk_copy(copy)) decide(span, what, "by TMA, as consecutive bytes", "");
    if (copy.mode != CopyMode::bulk_load) return placed;
    decide(span, what,
           is_bulk_copy(copy) ? "by TMA, as consecutive bytes, as the program says" : "by TMA, as the program says",
           "");
    const ir::Expr bytes = ir::int_imm(bytes_of_copy(copy));
    return block({ir::make_stmt(ir::Barrier{ir::BarrierOp::expect, *copy.barrier, bytes, 1}, span), placed}, span);
  }

  // For several blocks of a cluster. Where the program does not wait itself, a cluster barrier stands before, since the
  // tile of any of them may be in use, and each waits for its own bytes.
  Stmt rewrite_shared(const Stmt& stmt, const ir::Copy& copy) {
    const Span span = stmt->span;
    ir::Copy load = copy;
    load.mode = CopyMode::bulk_load;
    const std::string what = name_of_copy(copy.source.buffer, copy.destination.buffer);
    std::string why = why_not(load);
    if (!why.empty()) {
      if (!result_.error)
        result_.error = make_error(DiagnosticKind::unsupported_tile_feature, span,
                                   fmt::format("this copy cannot be for several blocks: {}", why),
                                   "let each block copy for itself, without a `cluster_mask`");
      return stmt;
    }
    result_.tiles.insert(ir::memory_of(copy.destination.buffer));
    decide(span, what, fmt::format("by TMA, once for the blocks of mask {}", copy.multicast), "");
    const ir::Expr bytes = ir::int_imm(bytes_of_copy(copy));
    if (copy.mode == CopyMode::bulk_load)
      return block({ir::make_stmt(ir::Barrier{ir::BarrierOp::expect, *copy.barrier, bytes, 1}, span), stmt}, span);
    const ir::Buffer arrived = slot_barriers("arrived", 1, 1, span), phases = slot_phases("arrived_phases", span);
    result_.kernel.allocations.push_back(arrived);
    result_.kernel.allocations.push_back(phases);
    beginning_.push_back(ir::make_stmt(ir::Store{phases, {ir::int_imm(0)}, ir::int_imm(0)}, span));
    load.barrier = element(arrived, {ir::int_imm(0)}, span);
    std::vector<Stmt> all{ir::make_stmt(ir::Sync{ir::SyncScope::cluster}, span),
                          ir::make_stmt(ir::Barrier{ir::BarrierOp::arrive_expect, *load.barrier, bytes, 1}, span),
                          ir::make_stmt(std::move(load), span)};
    wait_for_phase(arrived, phases, ir::int_imm(0), span, all);
    return block(std::move(all), span);
  }

  // Into the memory of another block, which is in use as long as both run. There the program announces the bytes.
  Stmt rewrite_remote(const Stmt& stmt, const ir::Copy& copy) {
    const bool by_tma = copy.mode == CopyMode::bulk_load;
    std::string why = by_tma                                                      ? cluster_copy_obstacle(copy)
                      : copy.source.buffer->type != copy.destination.buffer->type ? "its elements change on the way"
                                                                                  : "";
    if (!why.empty() && !result_.error)
      result_.error = make_error(DiagnosticKind::unsupported_tile_feature, stmt->span,
                                 fmt::format("this copy cannot be into another block's memory: {}", why),
                                 by_tma ? "copy whole rows of 16 bytes, or without a `remote_barrier`"
                                        : "convert the elements into a tile of their own before");
    result_.tiles.insert(ir::memory_of(copy.source.buffer));
    result_.tiles.insert(ir::memory_of(copy.destination.buffer));
    if (by_tma)
      decide(stmt->span, name_of_copy(copy.source.buffer, copy.destination.buffer),
             "by TMA, into another block's memory, as the program says", "");
    return stmt;
  }

  Stmt rewrite_gemm(const Stmt& stmt, const ir::Gemm& gemm) {
    std::string why = machine_.target + " has none";
    if (machine_.has_wgmma) why = plan_gemm(gemm, threads_, machine_, viewed_).wgmma_obstacle;
    const bool held = gemm.c.buffer->scope == ir::Scope::fragment && is_whole(gemm.c);
    if (why.empty() && !held) why = fmt::format("`{}` does not lie in registers as a whole", gemm.c.buffer->name);
    if (why.empty()) {
      for (const ir::Region* operand : {&gemm.a, &gemm.b})
        if (operand->buffer->scope == ir::Scope::shared) result_.tiles.insert(ir::memory_of(operand->buffer));
      return stmt;
    }
    decide(stmt->span, "gemm into " + gemm.c.buffer->name, "at once", "not wgmma: " + why);
    ir::Gemm now = gemm;
    now.asynchronous = false;
    return ir::make_stmt(std::move(now), stmt->span);
  }
};

}  // namespace

WholeBlock whole_block(const ir::Kernel& kernel) {
  WholeBlock result{ir::sharing_buffers(kernel), ir::effects_of(kernel.body).writes, {}};
  const auto set_apart = [&](const ir::Region& region) { result.apart.insert(ir::memory_of(region.buffer)); };
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        const auto* gemm = ir::as<ir::Gemm>(stmt);
        if (gemm) set_apart(gemm->a), set_apart(gemm->b);
        const auto* copy = ir::as<ir::Copy>(stmt);
        if (copy == nullptr) return;
        const bool stores = copy->destination.buffer->scope == ir::Scope::global;
        const ir::Region& tile = stores ? copy->source : copy->destination;
        const bool by_box = copy->mode == CopyMode::complete ? stores : tma_part_obstacle(*copy, result.viewed).empty();
        if (by_box && (stores || needs_panels(tile))) set_apart(tile);
      },
      [](const ir::Expr&) {});
  return result;
}

ManualAsynchrony keep_asynchrony(const ir::Kernel& kernel, const Machine& machine, const ir::Sync& sync,
                                 const WholeBlock& block) {
  ManualAsynchrony result{kernel, {}, {}, {}};
  KeepAsynchrony keep(result, machine, sync, block);
  const Stmt body = keep.rewrite(kernel.body);
  std::vector<Stmt> all = keep.beginning();
  all.push_back(body);
  result.kernel.body = keep.beginning().empty() ? body : ir::make_stmt(ir::Block{std::move(all)}, body->span);
  return result;
}

}  // namespace tilepilot::targets::gpu
