#include "compiler/passes/threads/uniformity.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/simplify.h"
#include "compiler/passes/algebra/static_index.h"
#include "compiler/passes/iterations/iteration_conflicts.h"
#include "compiler/passes/threads/thread_differences.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

Error spread_over_threads(const Stmt& s, const Buffer& buffer) {
  return make_error(DiagnosticKind::unsupported_tile_feature, s->span,
                    fmt::format("each thread writes to the fragment `{}`, whose elements tile operators spread "
                                "over the threads",
                                buffer->name),
                    "write its elements in a `T.Parallel` loop, or use `T.alloc_shared` or `T.alloc_local`");
}

// What a thread writes with this statement for itself, as it does not where all contribute; null: nothing.
const Buffer* written_by_thread(const Stmt& s) {
  if (const auto* n = as<Store>(s)) return &n->buffer;
  const auto* update = as<Atomic>(s);
  if (update && update->op != AtomicOp::load && !memory_of(*update->element.buffer)->reducer)
    return &update->element.buffer;
  return nullptr;
}

class Analysis {
 public:
  explicit Analysis(const Kernel& kernel) : kernel_(kernel), threads_(kernel) {
    walk(
        kernel.body,
        [&](const Stmt& s) {
          if (const auto* n = as<Let>(s)) lets_.emplace(n->var.get(), n->value);
          if (as<For>(s) && is_collective(s)) note_stores_of_loop(s);
        },
        [](const Expr&) {});
  }

  Result<Uniformity> run() {
    // What must be uniform makes more statements collective, and these make more things have to be uniform.
    do {
      grown_ = false;
      mark(kernel_.body);
      require_all(kernel_.body);
    } while (grown_);
    TRY(check(kernel_.body));
    TRY(check_fragments(kernel_.body));
    for (const Buffer& buffer : kernel_.allocations) {
      if (is_threads_own(*buffer)) result_.thread_private_buffers.insert(buffer.get());
    }
    return std::move(result_);
  }

 private:
  // Buffers ----------------------------------------------------------------------------------------------------------

  // Tile operators on local buffers were lowered before: what is left works on tiles of the block.
  void note_stores_of_loop(const Stmt& s) {
    walk(
        s,
        [&](const Stmt& part) {
          if (const auto* n = as<Store>(part)) note_store_of_loop(*n->buffer);
          if (const auto* n = as<Atomic>(part)) note_store_of_loop(*n->element.buffer);
        },
        [](const Expr&) {});
  }

  void note_store_of_loop(const BufferData& buffer) {
    if (buffer.scope == Scope::local) uniform_.insert(memory_of(buffer));
  }

  bool is_threads_own(const BufferData& buffer) const {
    return threads_.may_be_own(buffer) && uniform_.count(memory_of(buffer)) == 0;
  }

  // Collective statements --------------------------------------------------------------------------------------------

  bool mark(const Stmt& s) {
    bool together = is_collective(s) || result_.collective.count(s.get()) > 0;
    if (const auto* n = as<Store>(s)) together |= uniform_.count(memory_of(n->buffer)) > 0;
    if (!is_collective(s)) {
      for (const Stmt& child : bodies(s)) together |= mark(child);
      if (together && is_loop(s)) mark_jumps(bodies(s).front());
    }
    if (together) grown_ |= result_.collective.insert(s.get()).second;
    return together;
  }

  // Who leaves a loop that threads run together, leaves it together.
  bool mark_jumps(const Stmt& s) {
    bool found = is_jump(s);
    if (!is_loop(s)) {
      for (const Stmt& child : bodies(s)) found |= mark_jumps(child);
    }
    if (found) grown_ |= result_.collective.insert(s.get()).second;
    return found;
  }

  void require(const Expr& e) {
    walk(e, [&](const Expr& part) { require_part(part); });
  }

  void require_part(const Expr& part) {
    if (const auto* n = std::get_if<Load>(&part->node)) {
      if (threads_.may_be_own(*n->buffer)) grown_ |= uniform_.insert(memory_of(n->buffer)).second;
    }
    const auto* ref = std::get_if<VarRef>(&part->node);
    const auto let = ref ? lets_.find(ref->var.get()) : lets_.end();
    if (let == lets_.end() || !result_.shared_lets.insert(let->first).second) return;
    grown_ = true;
    require(let->second);
  }

  void require_all(const Stmt& s) {
    if (result_.collective.count(s.get()) == 0) return;
    if (is_collective(s)) return require_everything(s);
    if (const auto* n = as<For>(s)) {
      for (const Expr& extent : n->extents) require(extent);
    }
    if (const auto* n = as<While>(s)) require(n->condition);
    if (const auto* n = as<If>(s)) require(n->condition);
    if (const auto* n = as<Store>(s)) {
      for (const Expr& index : n->indices) require(index);
      require(n->value);
    }
    for (const Stmt& child : bodies(s)) require_all(child);
  }

  void require_everything(const Stmt& s) {
    walk(
        s, [](const Stmt&) {}, [&](const Expr& part) { require_part(part); });
  }

  // Whether threads may disagree
  // --------------------------------------------------------------------------------------

  static Error disagreement(const Stmt& s, const char* what) {
    return make_error(DiagnosticKind::unsupported_tile_feature, s->span,
                      fmt::format("the threads of a block synchronise inside, but {} differs between them", what),
                      "barriers and tile operators belong where all threads of the block come: move them out of the "
                      "condition, or let the condition guard only the statements around them");
  }

  Status check(const Stmt& s) const {
    if (result_.collective.count(s.get()) == 0) return {};
    if (is_collective(s)) return check_operands(s);
    if (const auto* n = as<If>(s); n && threads_.differs(n->condition)) return disagreement(s, "this condition");
    if (const auto* n = as<For>(s); n && threads_.differs(n->extents))
      return disagreement(s, "how often this loop runs");
    if (const auto* n = as<While>(s); n && threads_.differs(n->condition))
      return disagreement(s, "how often this loop runs");
    if (const auto* n = as<Store>(s); n && (threads_.differs(n->indices) || threads_.differs(n->value)))
      return disagreement(s, "this value");
    for (const Stmt& child : bodies(s)) TRY(check(child));
    return {};
  }

  // What tile operators hold in fragments lies spread over the threads: no thread has all of it to write to.
  Status check_fragments(const Stmt& s) const {
    if (is_collective(s)) return {};
    const Buffer* written = written_by_thread(s);
    if (written && (*written)->scope == Scope::fragment && !is_threads_own(**written))
      return spread_over_threads(s, *written);
    for (const Stmt& child : bodies(s)) TRY(check_fragments(child));
    return {};
  }

  Status check_operands(const Stmt& s) const {
    const Accesses accesses = region_accesses(s);
    for (const auto* regions : {&accesses.reads, &accesses.writes}) {
      for (const Region* region : *regions) {
        if (region->buffer->scope != Scope::local) continue;
        return make_error(DiagnosticKind::unsupported_tile_feature, s->span,
                          fmt::format("`{}` is an array of each thread's own, this works on tiles of the block",
                                      region->buffer->name),
                          "allocate a fragment or a shared tile, or write the loop that each thread runs");
      }
    }
    bool different = false;
    walk(
        s, [](const Stmt&) {}, [&](const Expr& e) { different |= threads_.differs(e); });
    if (!different) return {};
    return make_error(DiagnosticKind::unsupported_tile_feature, s->span,
                      "all threads of the block do this together, but what it works on differs between them",
                      "write the part of each thread as `T.serial` loops, or leave the thread index out");
  }

  const Kernel& kernel_;
  const ThreadDifferences threads_;
  Uniformity result_;
  bool grown_ = false;
  std::unordered_map<const VarData*, Expr> lets_;
  std::unordered_set<const BufferData*> uniform_;  // collective statements read them
};

// Stores of threads, each for itself, to fragments.
class ThreadStores {
 public:
  explicit ThreadStores(const Kernel& kernel)
      : kernel_(kernel), differences_(kernel), loop_(as_loop(kernel)), space_(loop_) {}

  Status check(const Stmt& s) {
    if (is_collective(s)) return {};
    const Buffer* written = written_by_thread(s);
    if (written && (*written)->scope == Scope::fragment && may_disturb(s)) return spread_over_threads(s, *written);
    const auto* choice = as<If>(s);
    if (choice == nullptr) {
      for (const Stmt& child : bodies(s)) TRY(check(child));
      return {};
    }
    const Expr condition = space_.expanded(choice->condition);
    TRY(check_under(condition, choice->then));
    return choice->otherwise ? check_under(unary(UnaryOp::logical_not, condition), choice->otherwise) : Status{};
  }

 private:
  const Kernel& kernel_;
  const ThreadDifferences differences_;
  const For loop_;  // over the threads
  const IterationSpace space_;
  std::vector<Expr> guards_;  // hold for the threads that are here

  static For as_loop(const Kernel& kernel) {
    For loop{LoopKind::parallel, kernel.thread_vars, {}, 0, kernel.body};
    for (size_t axis = 0; axis < kernel.thread_vars.size(); ++axis)
      loop.extents.push_back(int_imm(kernel.threads[axis], kernel.thread_vars[axis]->type));
    return loop;
  }

  Status check_under(const Expr& condition, const Stmt& s) {
    guards_.push_back(condition);
    Status status = check(s);
    guards_.pop_back();
    return status;
  }

  bool may_disturb(const Stmt& s) const {
    if (const auto* update = as<Atomic>(s)) return several_at_one_place(update->element.start);
    const Store& store = *as<Store>(s);
    const auto* memory = memory_of(store.buffer);
    bool differs = differences_.differs(store.value) || differences_.differs(store.indices);
    walk(store.value, [&](const Expr& part) {
      const auto* load = as<Load>(part);
      differs |= load != nullptr && memory_of(load->buffer) == memory;
    });
    return differs && several_at_one_place(store.indices);
  }

  // Where it is not known who comes, or where to, several do.
  bool several_at_one_place(const std::vector<Expr>& indices) const {
    std::vector<StaticIndex> evaluators;
    for (const Expr& index : indices) {
      auto evaluator = StaticIndex::of(space_.expanded(index), kernel_.thread_vars);
      if (evaluator) evaluators.push_back(std::move(*evaluator));
    }
    const bool known = evaluators.size() == indices.size();
    if (!known && !space_.may_conflict(indices)) return false;
    std::set<std::vector<int64_t>> places;
    std::vector<int64_t> thread(kernel_.thread_vars.size(), 0);
    do {
      if (!may_come(thread)) continue;
      std::vector<int64_t> place;
      for (const StaticIndex& evaluator : evaluators) place.push_back(evaluator(thread));
      if (!places.insert(std::move(place)).second) return true;
    } while (advance(thread));
    return false;
  }

  bool may_come(const std::vector<int64_t>& thread) const {
    VarRanges at;
    for (size_t axis = 0; axis < thread.size(); ++axis)
      at[kernel_.thread_vars[axis].get()] = {thread[axis], thread[axis]};
    return std::none_of(guards_.begin(), guards_.end(),
                        [&](const Expr& guard) { return constant_int(simplify(guard, at)) == 0; });
  }

  bool advance(std::vector<int64_t>& thread) const {
    for (size_t axis = 0; axis < thread.size(); ++axis) {
      if (++thread[axis] < kernel_.threads[axis]) return true;
      thread[axis] = 0;
    }
    return false;
  }
};

}  // namespace

Status check_thread_stores(const Kernel& kernel) {
  return kernel.thread_vars.empty() ? Status{} : ThreadStores(kernel).check(kernel.body);
}

Result<Uniformity> find_uniformity(const Kernel& kernel) { return Analysis(kernel).run(); }

}  // namespace tilepilot::passes
