#include "compiler/passes/threads/thread_sync.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "compiler/ir/scalar_buffer.h"
#include "compiler/ir/search.h"
#include "compiler/passes/element_form.h"
#include "compiler/passes/threads/thread_accesses.h"
#include "compiler/passes/threads/thread_private_loops.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

using Stmts = std::vector<Stmt>;
using ThreadAccessList = std::vector<ThreadAccess>;

Stmt block(Stmts body, Span span) { return make_stmt(Block{std::move(body)}, span); }

bool is_sync(const Stmt& s) { return as<Sync>(s) != nullptr; }
bool is_warp_sync(const Stmt& s) { return as<Sync>(s) && as<Sync>(s)->scope == SyncScope::warp; }
// Orders what was before the arrival alone.
bool is_cluster_wait(const Stmt& s) { return as<Sync>(s) && as<Sync>(s)->scope == SyncScope::cluster_wait; }

// Programs in which threads wait for each other by other means.
bool orders_itself(const Stmt& body) {
  return contains(body, [](const Stmt& s) {
    const auto* sync = as<Sync>(s);
    return as<Roles>(s) || as<Barrier>(s) || as<Concurrent>(s) || (sync && sync->threads != 0);
  });
}

// Since the place where all threads last met.
struct Open {
  ThreadAccessList pending;
  ThreadAccessList first;  // before they met at all
  bool synced = false;     // since the beginning
  bool passed = false;     // an operator of all threads, since the beginning

  void note(const ThreadAccessList& accesses) {
    for (ThreadAccess access : accesses) {
      access.past_operator |= passed;
      if (!synced) first.push_back(access);
      access.past_operator = false;
      pending.push_back(std::move(access));
    }
  }
  void sync() {
    pending.clear();
    synced = true;
  }
  void pass_operator() {
    passed = true;
    for (ThreadAccess& access : pending) access.past_operator = true;
  }
  void sync_warps() {
    for (ThreadAccess& access : pending) access.warps_met = true;
  }
};

// Statements under a condition that threads answer differently, with barriers between.
class UnderCondition {
 public:
  explicit UnderCondition(std::vector<Buffer>& allocations) : allocations_(allocations) {}

  Stmts apart(const Expr& condition, const Stmts& list) {
    Stmts result, together;
    const auto close = [&](Span span) {
      if (together.empty()) return;
      result.push_back(make_stmt(If{condition, block(std::exchange(together, {}), span), nullptr}, span));
    };
    for (const Stmt& s : without_lets(list)) {
      if (!contains(s, is_sync)) {
        together.push_back(s);
        continue;
      }
      close(s->span);
      result.push_back(around(condition, s));
    }
    if (!together.empty()) close(together.front()->span);
    return result;
  }

 private:
  std::vector<Buffer>& allocations_;

  Stmt around(const Expr& condition, const Stmt& s) {
    const auto inner = [&](const Stmt& body) { return block(apart(condition, statements(body)), body->span); };
    if (const auto* n = as<For>(s))
      return make_stmt(For{n->kind, n->vars, n->extents, n->num_stages, inner(n->body)}, s->span);
    if (const auto* n = as<While>(s)) return make_stmt(While{n->condition, inner(n->body)}, s->span);
    if (as<Block>(s)) return inner(s);
    if (const auto* n = as<If>(s))
      return make_stmt(If{n->condition, inner(n->then), n->otherwise ? inner(n->otherwise) : nullptr}, s->span);
    return make_stmt(Sync{}, s->span);
  }

  // What a statement binds is not visible under the next condition: it is put in where it is used, or kept in memory.
  Stmts without_lets(const Stmts& list) {
    std::unordered_map<const VarData*, Expr> values;
    Stmts result;
    for (const Stmt& before : list) {
      const Stmt s = substitute(before, [&](const Var& var) -> Expr {
        const auto value = values.find(var.get());
        return value == values.end() ? nullptr : value->second;
      });
      const Var var = bound_variable(*s);
      const auto* let = as<Let>(s);
      if (let && !has_load(let->value)) {
        values.emplace(var.get(), let->value);
        continue;
      }
      if (!let) result.push_back(s);
      if (!var) continue;
      const Buffer kept = one_element(*var, s->span);
      result.push_back(make_stmt(Store{kept, {int_imm(0)}, let ? let->value : var_ref(var)}, s->span));
      values.emplace(var.get(), load(kept, {int_imm(0)}, s->span));
    }
    return result;
  }

  Buffer one_element(const VarData& var, Span span) {
    allocations_.push_back(std::make_shared<BufferData>(scalar_buffer(var.name, var.type, span)));
    return allocations_.back();
  }
};

class Placement {
 public:
  explicit Placement(const Kernel& kernel)
      : kernel_(kernel), differences_(kernel), accesses_(kernel, differences_), by_(accesses_.all_threads()) {}

  // The kernel itself if no barrier is missing.
  Kernel run(const Kernel& original) {
    Open open;
    Stmts body = list(kernel_.body, open);
    if (inserted_ == 0) return original;
    Kernel result = kernel_;
    result.allocations.insert(result.allocations.end(), kept_.begin(), kept_.end());
    result.body = block(std::move(body), kernel_.body->span);
    return result;
  }

 private:
  const Kernel& kernel_;
  const ThreadDifferences differences_;
  const ThreadAccesses accesses_;
  std::vector<bool> by_;      // the threads that come to where we are, as far as known
  int inserted_ = 0;          // barriers
  std::vector<Buffer> kept_;  // what outlives a condition that is cut

  Stmts list(const Stmt& body, Open& open) {
    Stmts result;
    for (const Stmt& s : statements(body)) place(s, open, result);
    return result;
  }
  Stmt inside(const Stmt& body, Open& open) { return block(list(body, open), body->span); }

  bool conflict(const ThreadAccessList& earlier, const ThreadAccessList& later) const {
    return std::any_of(later.begin(), later.end(), [&](const ThreadAccess& b) {
      return std::any_of(earlier.begin(), earlier.end(),
                         [&](const ThreadAccess& a) { return accesses_.conflict(a, b); });
    });
  }

  void insert_barrier(Span span, Stmts& out) {
    out.push_back(make_stmt(Sync{}, span));
    ++inserted_;
  }

  // Before what touches these elements.
  void sync_before(const ThreadAccessList& accesses, Span span, Open& open, Stmts& out) {
    if (!conflict(open.pending, accesses)) return;
    insert_barrier(span, out);
    open.sync();
  }

  void place(const Stmt& s, Open& open, Stmts& out) {
    if (is_collective(s)) {
      if (is_warp_sync(s))
        open.sync_warps();
      else if (is_sync(s) && !is_cluster_wait(s))
        open.sync();
      else
        open.pass_operator();
      return out.push_back(s);
    }
    if (as<Block>(s)) return out.push_back(inside(s, open));
    if (differences_.divides(s)) return place_each(s, open, out);
    if (const auto* n = as<For>(s)) return place_loop(s, accesses_.of(n->extents, by_), open, out);
    if (as<While>(s)) return place_loop(s, {}, open, out);
    if (const auto* n = as<If>(s)) return place_choice(*n, s->span, open, out);
    place_each(s, open, out);
  }

  // What each thread does for itself.
  void place_each(const Stmt& s, Open& open, Stmts& out) {
    const ThreadAccessList accesses = accesses_.of(s, by_);
    sync_before(accesses, s->span, open, out);
    if (as<If>(s) && place_under_condition(s, accesses, open, out)) return;
    open.note(accesses);
    out.push_back(s);
  }

  // False, and nothing done, if no barrier is needed below the condition, or the program has its own.
  bool place_under_condition(const Stmt& s, const ThreadAccessList& accesses, Open& open, Stmts& out) {
    if (accesses.empty() || contains(s, [](const Stmt& part) { return is_collective(part) && !is_warp_sync(part); }))
      return false;
    const auto* n = as<If>(s);
    const int before = inserted_;
    Open then, otherwise;
    const std::vector<bool> here = by_;
    by_ = accesses_.where(n->condition, true, here);
    const Stmts first = list(n->then, then);
    by_ = accesses_.where(n->condition, false, here);
    const Stmts second = n->otherwise ? list(n->otherwise, otherwise) : Stmts{};
    by_ = here;
    if (inserted_ == before && !contains(s, is_warp_sync)) return false;
    const Var taken = make_var("taken", kBool);
    out.push_back(make_stmt(Let{taken, n->condition}, n->condition->span));
    UnderCondition under(kept_);
    for (Stmt& part : under.apart(var_ref(taken), first)) out.push_back(std::move(part));
    const Expr not_taken = unary(UnaryOp::logical_not, var_ref(taken), n->condition->span);
    for (Stmt& part : under.apart(not_taken, second)) out.push_back(std::move(part));
    ++inserted_;  // what was the warps' is the block's
    open.note(accesses);
    return true;
  }

  // All threads go the same way.
  void place_choice(const If& n, Span span, Open& open, Stmts& out) {
    const ThreadAccessList accesses = accesses_.of(std::vector<Expr>{n.condition}, by_);
    sync_before(accesses, span, open, out);
    open.note(accesses);
    Open otherwise = open;
    const Stmt then = inside(n.then, open);
    const Stmt other = n.otherwise ? inside(n.otherwise, otherwise) : nullptr;
    out.push_back(make_stmt(If{n.condition, then, other}, span));
    join(open, otherwise);
  }

  static void join(Open& open, const Open& other) {
    open.pending.insert(open.pending.end(), other.pending.begin(), other.pending.end());
    open.first.insert(open.first.end(), other.first.begin(), other.first.end());
    open.synced = open.synced && other.synced;
    open.passed = open.passed || other.passed;
  }

  // `control`: what its extents read. The condition of a while loop belongs to each iteration.
  void place_loop(const Stmt& s, const ThreadAccessList& control, Open& open, Stmts& out) {
    const auto* n = as<For>(s);
    const Stmt& inner = n ? n->body : as<While>(s)->body;
    Open iteration;
    if (!n) iteration.note(accesses_.of(std::vector<Expr>{as<While>(s)->condition}, by_));
    Stmts body = list(inner, iteration);
    ThreadAccessList first = accesses_.of_loop(iteration.first, s);
    first.insert(first.end(), control.begin(), control.end());
    sync_before(first, s->span, open, out);
    open.note(first);
    if (iteration.passed) open.pass_operator();
    sync_between_iterations(s, iteration, body);
    if (iteration.synced && runs(s)) open.sync();
    ThreadAccessList last = accesses_.of_loop(iteration.pending, s);
    if (contains(inner, is_jump)) last = accesses_.of(s, by_);
    open.pending.insert(open.pending.end(), last.begin(), last.end());
    const Stmt result = block(std::move(body), inner->span);
    out.push_back(n ? make_stmt(For{n->kind, n->vars, n->extents, n->num_stages, result}, s->span)
                    : make_stmt(While{as<While>(s)->condition, result}, s->span));
  }

  // What one iteration leaves open and a later one touches.
  void sync_between_iterations(const Stmt& loop, Open& iteration, Stmts& body) {
    const bool next_only = iteration.synced;
    // Between an iteration and the next but one, at least, lies all of an iteration.
    if (iteration.passed) iteration.pass_operator();
    const bool needed = std::any_of(iteration.pending.begin(), iteration.pending.end(), [&](const ThreadAccess& a) {
      return std::any_of(iteration.first.begin(), iteration.first.end(),
                         [&](const ThreadAccess& b) { return accesses_.conflict_in(loop, next_only, a, b); });
    });
    if (!needed) return;
    // Not every iteration comes to its end.
    const bool leaves = std::any_of(body.begin(), body.end(), [](const Stmt& s) { return contains(s, is_jump); });
    Stmts barrier;
    insert_barrier(loop->span, barrier);
    body.insert(leaves ? body.begin() : body.end(), barrier.front());
    iteration.sync();
  }

  static bool runs(const Stmt& loop) {
    const auto* n = as<For>(loop);
    return n && std::all_of(n->extents.begin(), n->extents.end(),
                            [](const Expr& extent) { return constant_int(extent).value_or(0) > 0; });
  }
};

Kernel with_barriers(const Kernel& kernel) {
  if (kernel.thread_vars.empty() || orders_itself(kernel.body)) return kernel;
  Kernel lowered = kernel;
  lowered.body = thread_private_loops(kernel.body);
  return Placement(lowered).run(kernel);
}

}  // namespace

Program thread_sync(const Program& program) {
  Program result = program;
  for (Kernel& kernel : result.kernels) kernel = with_barriers(kernel);
  return result;
}

}  // namespace tilepilot::passes
