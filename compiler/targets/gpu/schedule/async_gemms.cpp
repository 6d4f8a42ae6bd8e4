#include "compiler/targets/gpu/schedule/async_gemms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

using ir::Stmt;

namespace {

using Stmts = std::vector<Stmt>;

// A statement of an iteration.
struct Step {
  Stmt stmt;
  ir::Effects effects;
  ir::Variables binds;
  bool is_gemm = false;                  // that may be asynchronous
  std::array<int64_t, 4> sums_layout{};  // of a GEMM, how its sums are held
};
using Steps = std::vector<Step>;

// What threads or asynchronous operations order by themselves: no work moves over it.
bool orders(const Stmt& stmt) {
  if (ir::contains<ir::Sync, ir::Barrier, ir::Async, ir::Roles, ir::Concurrent, ir::ExternCall, ir::Break, ir::Continue,
                   ir::Check, ir::Print, ir::LoadMatrix, ir::Mma>(stmt))
    return true;
  const auto* copy = ir::as<ir::Copy>(stmt);
  if (copy && (copy->mode != ir::CopyMode::complete || copy->peer)) return true;
  return !ir::as<ir::Gemm>(stmt) && ir::contains<ir::Gemm>(stmt);
}

// A run of steps with the waits between them.
class Schedule {
 public:
  Schedule(const Steps& steps, const ir::BufferSet& lasting) : lasting_(lasting) {
    std::vector<const Step*> running;
    for (const Step& step : steps) {
      wait_for(step, running);
      note(step.effects);
      for (const Step* other : running) note(other->effects);  // which hold their registers on
      gemms_.push_back(ir::as<ir::Gemm>(step.stmt) != nullptr);
      if (step.is_gemm) running.push_back(&step);
      out_.push_back(step.is_gemm ? asynchronous(step.stmt) : step.stmt);
      ++now_;
    }
    if (!running.empty()) wait(0, out_.back()->span);
  }

  const Stmts& statements() const { return out_; }
  // Whether some GEMM has work, or another GEMM, beside it.
  bool overlaps() const { return overlaps_; }

  // Of a thread, for the fragments that hold values at the fullest step. What a loop makes of fragments that nothing
  // needs afterwards takes their registers, one after the other.
  int64_t peak(int64_t threads) const {
    int64_t most = 0;
    for (int64_t at = 0; at < now_; ++at) {
      int64_t kept = 0, ends = 0, begins = 0;
      for (const auto& [buffer, life] : lives_) {
        const auto [first, last] = life;
        if (!lasting_.contains(buffer) && (at < first || last < at)) continue;
        const bool is_kept = lasting_.contains(buffer) || (first < at && at < last) || first == last;
        (is_kept ? kept : first == at ? begins : ends) += registers_of_fragment(*buffer, threads);
      }
      const bool takes_over = !gemms_[static_cast<size_t>(at)];
      most = std::max(most, kept + (takes_over ? std::max(ends, begins) : ends + begins));
    }
    return most;
  }

 private:
  const ir::BufferSet& lasting_;  // fragments that hold values all the time
  std::map<const ir::BufferData*, std::pair<int64_t, int64_t>> lives_;
  std::vector<bool> gemms_;  // of each step
  Stmts out_;
  int64_t now_ = 0;
  bool overlaps_ = false;

  void note(const ir::Effects& effects) {
    for (const ir::BufferSet* set : {&effects.reads, &effects.writes})
      for (const ir::BufferData* buffer : *set) {
        if (buffer->scope != ir::Scope::fragment) continue;
        lives_.try_emplace(buffer, now_, now_).first->second.second = now_;
      }
  }

  void wait(int64_t count, Span span) {
    out_.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, count}, span));
  }

  // GEMMs end in the order in which they were started.
  void wait_for(const Step& step, std::vector<const Step*>& running) {
    size_t done = running.size();
    while (done > 0 && !waits_for(step, *running[done - 1])) --done;
    running.erase(running.begin(), running.begin() + static_cast<ptrdiff_t>(done));
    if (done > 0) wait(static_cast<int64_t>(running.size()), step.stmt->span);
    overlaps_ = overlaps_ || !running.empty();
  }

  // GEMMs that add to the same sums, held alike, are done in order.
  static bool waits_for(const Step& step, const Step& gemm) {
    if (!ir::depend(step.effects, gemm.effects)) return false;
    if (!step.is_gemm) return true;
    const auto &now = *ir::as<ir::Gemm>(step.stmt), &before = *ir::as<ir::Gemm>(gemm.stmt);
    const ir::BufferData* sums = ir::memory_of(before.c.buffer);
    const bool same_sums = ir::memory_of(now.c.buffer) == sums && now.c.extent == before.c.extent &&
                           now.c.buffer == before.c.buffer && !now.clear_accumulator &&
                           step.sums_layout == gemm.sums_layout;
    return !same_sums || ir::memory_of(now.a.buffer) == sums || ir::memory_of(now.b.buffer) == sums;
  }
};

// Each GEMM right after the one before it, but for what it needs.
Steps gemms_early(const Steps& given) {
  Steps out;
  size_t from = 0;  // in `out`: after the last GEMM
  for (const Step& step : given) {
    if (!step.is_gemm) {
      out.push_back(step);
      continue;
    }
    Steps needed, later;
    std::vector<const Step*> needing{&step};
    for (size_t at = out.size(); at-- > from;) {
      const Step& other = out[at];
      const bool needs = std::any_of(needing.begin(), needing.end(), [&](const Step* one) {
        return ir::depend(one->effects, other.effects) || ir::mentions(one->stmt, other.binds);
      });
      if (needs) needing.push_back(&other);
      (needs ? needed : later).push_back(other);
    }
    out.resize(from);
    out.insert(out.end(), needed.rbegin(), needed.rend());
    out.push_back(step);
    from = out.size();
    out.insert(out.end(), later.rbegin(), later.rend());
  }
  return out;
}

class AsyncGemms : public ir::Rewriter {
 public:
  AsyncGemms(const ir::Kernel& kernel, const Machine& machine, std::vector<Decision>& decisions)
      : loops_(kernel, machine),
        threads_(thread_count(kernel)),
        most_(registers_of_thread(threads_) - kOverheadRegisters),
        decisions_(decisions) {}
  using Rewriter::rewrite;

  Stmt rewrite(const Stmt& stmt) override {
    const auto* given = ir::as<ir::For>(stmt);
    if (given && given->kind == ir::LoopKind::parallel) return stmt;
    const Stmt inner = rewrite_children(stmt);
    const auto* loop = ir::as<ir::For>(inner);
    if (loop == nullptr) return inner;
    ir::For changed = *loop;
    changed.body = scheduled(loop->body);
    return changed.body == loop->body ? inner : ir::make_stmt(std::move(changed), stmt->span);
  }

 private:
  const PipelinedLoops loops_;
  const int64_t threads_, most_;
  std::vector<Decision>& decisions_;

  Stmt scheduled(const Stmt& body) {
    Stmts out;
    flatten(body, out);
    const bool waits_itself = std::any_of(out.begin(), out.end(), [](const Stmt& stmt) {
      return ir::contains(stmt, [](const Stmt& part) {
        const auto* gemm = ir::as<ir::Gemm>(part);
        const auto* async = ir::as<ir::Async>(part);
        return (gemm && gemm->asynchronous) || (async && async->op == ir::AsyncOp::wait_gemms);
      });
    });
    if (waits_itself) return body;
    Stmts all;
    Steps run;
    bool changed = false;
    const auto end_run = [&] {
      changed |= add_run(run, all);
      run.clear();
    };
    for (const Stmt& stmt : out) {
      if (!orders(stmt)) {
        Step step{stmt, ir::memory_effects_of(stmt), {}, loops_.may_be_async(stmt)};
        if (ir::as<ir::Let>(stmt)) step.binds = ir::bound_in(stmt);
        if (step.is_gemm) step.sums_layout = loops_.sums_layout(stmt);
        run.push_back(std::move(step));
        continue;
      }
      end_run();
      all.push_back(stmt);
    }
    end_run();
    return changed ? ir::make_stmt(ir::Block{std::move(all)}, body->span) : body;
  }

  static void flatten(const Stmt& stmt, Stmts& out) {
    for (const Stmt& part : ir::statements(stmt))
      if (ir::as<ir::Block>(part))
        flatten(part, out);
      else
        out.push_back(part);
  }

  // Whether the run has become another one.
  bool add_run(const Steps& run, Stmts& all) {
    const auto unchanged = [&] {
      for (const Step& step : run) all.push_back(step.stmt);
      return false;
    };
    const auto first = std::find_if(run.begin(), run.end(), [](const Step& step) { return step.is_gemm; });
    if (first == run.end()) return unchanged();
    const ir::BufferSet lasting = read_first(run);
    Steps one_by_one = run;
    for (Step& step : one_by_one) step.is_gemm = false;
    const int64_t before = Schedule(one_by_one, lasting).peak(threads_);
    int64_t needed = 0;
    for (const Steps& order : {gemms_early(run), run}) {
      const Schedule schedule(order, lasting);
      if (!schedule.overlaps()) continue;
      needed = schedule.peak(threads_);
      if (needed > std::max(most_, before)) continue;
      all.insert(all.end(), schedule.statements().begin(), schedule.statements().end());
      return true;
    }
    if (needed > 0)
      decisions_.push_back({first->stmt->span,
                            "GEMMs of the iteration",
                            "each waited for at once",
                            {fmt::format("not beside other work: that takes {} registers of each thread, which has {}",
                                         needed, most_)}});
    return unchanged();
  }

  // What the run finds there: of an iteration before, or of what stands before the loop.
  static ir::BufferSet read_first(const Steps& run) {
    ir::BufferSet written, lasting;
    for (const Step& step : run) {
      for (const ir::BufferData* buffer : step.effects.reads)
        if (!written.contains(buffer)) lasting.insert(buffer);
      written.insert(step.effects.writes.begin(), step.effects.writes.end());
    }
    return lasting;
  }
};

}  // namespace

ir::Kernel with_async_gemms(const ir::Kernel& kernel, const Machine& machine, std::vector<Decision>& decisions) {
  if (!machine.has_wgmma) return kernel;
  ir::Kernel result = kernel;
  result.body = AsyncGemms(kernel, machine, decisions).rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
