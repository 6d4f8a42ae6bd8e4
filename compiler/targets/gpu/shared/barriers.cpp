#include "compiler/targets/gpu/shared/barriers.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/threads/thread_differences.h"
#include "compiler/targets/gpu/facts/element_copies.h"
#include "compiler/targets/gpu/facts/elements_apart.h"
#include "compiler/targets/gpu/facts/let_values.h"
#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::memory_of;
using ir::Stmt;

namespace {

struct Effect {
  const ir::BufferData* memory;
  bool writes;
  bool collective;                               // all threads together, rather than each for itself
  std::vector<const ir::BufferData*> told = {};  // barriers at which all threads have arrived since
  bool waited = false;                           // and at one of them all have waited
  bool same_access(const Effect& other) const {
    return memory == other.memory && writes == other.writes && collective == other.collective;
  }
};
using Effects = std::vector<Effect>;

// What threads and their asynchronous operations have accessed on some path to a place.
struct State {
  Effects pending;                 // since the last barrier
  Effects wgmmas, stores, copies;  // asynchronous ones, that their threads may not have waited for yet
  bool is_reached = true;          // else a jump leads elsewhere
};

// Where the jumps of a loop lead.
struct Jumps {
  const Effects* condition;  // that `continue` comes to, of a while loop; else null
  State next = {{}, {}, {}, {}, false}, after = {{}, {}, {}, {}, false};  // its next iteration, what follows it
};

bool is_collective(const Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  return (loop && loop->kind == ir::LoopKind::parallel) || ir::is_tile_operator(*stmt) ||
         ir::as<ir::Sync>(stmt) != nullptr;
}

// The last one counts.
void add(Effects& effects, const Effect& effect) {
  const auto found =
      std::find_if(effects.begin(), effects.end(), [&](const Effect& one) { return one.same_access(effect); });
  if (found == effects.end())
    effects.push_back(effect);
  else
    *found = effect;
}

// Either may be what happened.
void merge(Effects& effects, const Effects& others) {
  for (const Effect& other : others) {
    const auto found =
        std::find_if(effects.begin(), effects.end(), [&](const Effect& one) { return one.same_access(other); });
    if (found == effects.end()) {
      effects.push_back(other);
      continue;
    }
    found->waited = found->waited && other.waited;
    std::erase_if(found->told, [&](const ir::BufferData* barrier) {
      return std::find(other.told.begin(), other.told.end(), barrier) == other.told.end();
    });
  }
}

void merge(State& state, const State& other) {
  if (!other.is_reached) return;
  if (!state.is_reached) {
    state = other;
    return;
  }
  merge(state.pending, other.pending);
  merge(state.wgmmas, other.wgmmas);
  merge(state.stores, other.stores);
  merge(state.copies, other.copies);
}

class Placement {
 public:
  Placement(const ir::Kernel& kernel, const std::vector<ir::Buffer>& rings, const ScratchBuffers& scratch_buffers,
            const SharesMemory& share, const ir::Sync& sync)
      : kernel_(kernel),
        simt_(!kernel.thread_vars.empty()),
        threads_(thread_count(kernel)),
        scratch_buffers_(scratch_buffers),
        share_(share),
        sync_(sync),
        facts_(facts_of(kernel)) {
    for (const ir::Buffer& ring : rings) ordered_.insert(ring.get());
  }

  Stmt run(const Stmt& body) {
    State state;
    return list(body, state);
  }

 private:
  const ir::Kernel& kernel_;
  const bool simt_;
  const int64_t threads_;
  const ScratchBuffers& scratch_buffers_;
  const SharesMemory& share_;
  const ir::Sync sync_;
  const c::IntegerFacts facts_;
  std::unordered_set<const ir::BufferData*> ordered_;
  std::vector<Jumps*> loops_;  // that enclose the place, from the outermost

  bool counts(const ir::Buffer& buffer) const {
    const ir::BufferData* memory = memory_of(buffer);
    return memory->scope == ir::Scope::shared || memory->scope == ir::Scope::global;
  }

  Effects of(const Expr& expr, bool collective) const {
    Effects effects;
    ir::each_effect(expr, [&](const ir::Buffer& buffer, bool writes) {
      if (counts(buffer)) add(effects, {memory_of(buffer), writes, collective});
    });
    return effects;
  }

  Effects of(const Stmt& stmt) const {
    const bool collective = !simt_ || is_collective(stmt);
    Effects effects;
    // Atomic updates of different threads do not disturb each other, but what reads or writes plainly does.
    ir::each_effect(stmt, [&](const ir::Buffer& buffer, bool writes) {
      if (counts(buffer)) add(effects, {memory_of(buffer), writes, collective});
    });
    return effects;
  }

  // Tiles that share memory: whatever comes second may destroy what the first one left, or reads. That two tiles do is
  // not the program's choice, so that it cannot order what its threads do there, each for itself. TMA may
  // fill a tile again once all threads have told a barrier that they have read it, and have waited there: where a
  // program fills tiles by itself it says so in that way.
  bool conflict(const Effects& before, const Effects& now, bool by_tma = false) const {
    for (const Effect& a : before)
      for (const Effect& b : now) {
        if (a.memory == b.memory ? ordered_.contains(a.memory) : !share_(a.memory, b.memory)) continue;
        if (by_tma && a.memory == b.memory && !a.writes && a.waited) continue;
        if ((a.writes || b.writes) && (a.collective || b.collective || a.memory != b.memory)) return true;
      }
    return false;
  }

  static void note(Effects& pending, const Effects& effects) {
    for (const Effect& effect : effects) add(pending, effect);
  }

  void sync_before(const Effects& effects, Span span, State& state, std::vector<Stmt>& out, bool by_tma = false) const {
    if (!conflict(state.pending, effects, by_tma)) return;
    out.push_back(ir::make_stmt(sync_, span));
    state.pending.clear();
  }

  Stmt list(const Stmt& body, State& state) {
    std::vector<Stmt> out;
    for (const Stmt& stmt : ir::statements(body)) place(stmt, state, out);
    return ir::make_stmt(ir::Block{std::move(out)}, body->span);
  }

  // Each thread waits for what it has issued: then it is as if all did it here, without a barrier since.
  static void wait(const ir::Async& async, State& state) {
    Effects* running = async.op == ir::AsyncOp::wait_gemms    ? &state.wgmmas
                       : async.op == ir::AsyncOp::wait_stores ? &state.stores
                       : async.op == ir::AsyncOp::wait_copies ? &state.copies
                                                              : nullptr;
    if (running == nullptr) return;
    note(state.pending, *running);
    if (async.count == 0) running->clear();
  }

  static void tell(const ir::Barrier& barrier, State& state) {
    const ir::BufferData* here = barrier.barrier.buffer.get();
    for (Effect& effect : state.pending) {
      const bool told = std::find(effect.told.begin(), effect.told.end(), here) != effect.told.end();
      if (barrier.op == ir::BarrierOp::wait)
        effect.waited = effect.waited || told;
      else if (barrier.op != ir::BarrierOp::expect && barrier.threads == 0 && !told)
        effect.told.push_back(here);
    }
  }

  void place(const Stmt& stmt, State& state, std::vector<Stmt>& out) {
    if (const auto* sync = ir::as<ir::Sync>(stmt)) {
      const bool of_block = sync->threads == 0 || sync->threads == threads_,
                 of_role = sync->threads == sync_.threads && sync->barrier == sync_.barrier;
      if (sync->scope == ir::SyncScope::cluster || (sync->scope == ir::SyncScope::block && (of_block || of_role)))
        state.pending.clear();
      return out.push_back(stmt);
    }
    if (ir::as<ir::Block>(stmt)) return out.push_back(list(stmt, state));
    const bool enters = !is_collective(stmt) && (!simt_ || ir::contains(stmt, is_collective));
    const auto* loop = ir::as<ir::For>(stmt);
    if (enters && loop) return place_loop(stmt, loop->extents[0], loop->body, state, out);
    if (const auto* loop_while = ir::as<ir::While>(stmt); enters && loop_while)
      return place_loop(stmt, loop_while->condition, loop_while->body, state, out);
    if (const auto* choice = ir::as<ir::If>(stmt); enters && choice) return place_choice(stmt, *choice, state, out);
    if (passes::is_jump(stmt) && !loops_.empty()) return place_jump(stmt, state, out);
    place_leaf(stmt, state, out);
  }

  void place_leaf(const Stmt& stmt, State& state, std::vector<Stmt>& out) {
    Effects effects = of(stmt);
    const auto scratch = scratch_buffers_.find(stmt.get());
    if (scratch != scratch_buffers_.end()) add(effects, {scratch->second.get(), true, true});
    const auto* copy = ir::as<ir::Copy>(stmt);
    const ir::CopyMode mode = copy ? copy->mode : is_async_gather(stmt) ? ir::CopyMode::group : ir::CopyMode::complete;
    sync_before(effects, stmt->span, state, out, mode == ir::CopyMode::bulk_load);
    // Whoever reads what TMA loads has waited for it at its barrier.
    if (mode != ir::CopyMode::bulk_load) note(state.pending, effects);
    const auto* gemm = ir::as<ir::Gemm>(stmt);
    if (scratch != scratch_buffers_.end()) {
      state.pending = {{scratch->second.get(), false, true}};
      if (gemm) note(state.pending, of(stmt));  // which reads its operands on
    }
    if (gemm && gemm->asynchronous) note(state.wgmmas, effects);
    if (mode == ir::CopyMode::bulk_store) note(state.stores, effects);
    if (mode == ir::CopyMode::group) note(state.copies, effects);
    if (const auto* async = ir::as<ir::Async>(stmt)) wait(*async, state);
    if (const auto* barrier = ir::as<ir::Barrier>(stmt)) tell(*barrier, state);
    // What single threads do there, each for itself.
    if (!loops_.empty() && passes::may_jump_out(stmt)) {
      merge(loops_.back()->next, state);
      merge(loops_.back()->after, state);
    }
    out.push_back(stmt);
  }

  void place_jump(const Stmt& stmt, State& state, std::vector<Stmt>& out) {
    Jumps& loop = *loops_.back();
    if (ir::as<ir::Break>(stmt)) {
      merge(loop.after, state);
    } else {
      if (loop.condition) sync_before(*loop.condition, stmt->span, state, out);
      merge(loop.next, state);
    }
    out.push_back(stmt);
    state = {{}, {}, {}, {}, false};
  }

  // All threads go the same way.
  void place_choice(const Stmt& stmt, const ir::If& choice, State& state, std::vector<Stmt>& out) {
    const Effects read = of(choice.condition, true);
    sync_before(read, stmt->span, state, out);
    note(state.pending, read);
    State other = state;
    const Stmt then = list(choice.then, state);
    const Stmt otherwise = choice.otherwise ? list(choice.otherwise, other) : nullptr;
    merge(state, other);
    out.push_back(ir::make_stmt(ir::If{choice.condition, then, otherwise}, stmt->span));
  }

  // What an iteration leaves behind is there when the next one begins.
  void place_loop(const Stmt& stmt, const Expr& control, const Stmt& body, State& state, std::vector<Stmt>& out) {
    const Effects read = of(control, true);
    sync_before(read, stmt->span, state, out);
    note(state.pending, read);
    // Once before the loop, rather than in each iteration.
    if (conflict(state.pending, of(body))) {
      out.push_back(ir::make_stmt(sync_, stmt->span));
      state.pending.clear();
    }
    Jumps ways{ir::as<ir::While>(stmt) ? &read : nullptr};
    loops_.push_back(&ways);
    State around = state;
    list(body, around);  // twice: what is pending only grows by what one iteration leaves
    merge(around, ways.next);
    if (const auto* counted = ir::as<ir::For>(stmt)) {
      const auto apart = memory_apart(kernel_, *counted, facts_);
      std::erase_if(around.pending, [&](const Effect& effect) {  // tiles may lie where others do
        return effect.memory->scope == ir::Scope::global && apart.contains(effect.memory);
      });
    }
    merge(state, around);
    State last = state;
    Stmt inner = list(body, last);
    if (ir::as<ir::While>(stmt) && conflict(last.pending, read)) {
      std::vector<Stmt> all = ir::statements(inner);
      all.push_back(ir::make_stmt(sync_, stmt->span));
      inner = ir::make_stmt(ir::Block{std::move(all)}, body->span);
      last.pending = read;
    }
    loops_.pop_back();
    for (const State& left : {last, ways.next, ways.after}) merge(state, left);
    if (const auto* loop = ir::as<ir::For>(stmt))
      out.push_back(ir::make_stmt(ir::For{loop->kind, loop->vars, loop->extents, loop->num_stages, inner}, stmt->span));
    else
      out.push_back(ir::make_stmt(ir::While{control, inner}, stmt->span));
  }
};

}  // namespace

ir::Kernel place_barriers(const ir::Kernel& kernel, const std::vector<ir::Buffer>& rings,
                          const ScratchBuffers& scratch_buffers, const SharesMemory& share, const ir::Sync& sync) {
  ir::Kernel result = kernel;
  result.body = Placement(kernel, rings, scratch_buffers, share, sync).run(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
