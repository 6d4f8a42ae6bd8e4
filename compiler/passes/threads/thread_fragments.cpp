#include "compiler/passes/threads/thread_fragments.h"

#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/element_form.h"
#include "compiler/passes/threads/thread_differences.h"
#include "compiler/passes/threads/thread_private_loops.h"
#include "compiler/passes/threads/thread_values.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

// The fragment that a parallel loop sets and that is the only one it touches, or null: threads that hold it for
// themselves can each run the whole loop.
const BufferData* set_by_loop(const Stmt& s) {
  const auto* loop = as<For>(s);
  if (!loop || loop->kind != LoopKind::parallel) return nullptr;
  const BufferData* only = nullptr;
  bool alone = true;
  const auto note = [&](const BufferData& buffer) {
    if (only == nullptr) only = memory_of(buffer);
    alone &= only == memory_of(buffer);
  };
  walk(
      s,
      [&](const Stmt& part) {
        alone &= part == s || as<Store>(part) || as<If>(part) || as<Block>(part) || as<Let>(part);
        if (const auto* n = as<Store>(part)) note(*n->buffer);
      },
      [&](const Expr& part) {
        const auto* n = as<Load>(part);
        if (n && n->buffer->scope == Scope::fragment) note(*n->buffer);
      });
  return alone && only && only->scope == Scope::fragment ? only : nullptr;
}

struct Use {
  bool stored = false;       // by threads, one element at a time
  bool differently = false;  // in some statement, of whatever kind, threads do not all do the same
  bool filled = true;        // by tile operators no more than that
  bool moved = true;         // filled, copied, or set by a parallel loop of its own
};

// Who comes to a statement.
struct Place {
  bool apart = false;              // not all threads of the block
  const StmtNode* role = nullptr;  // the innermost branch that some threads take and in which they work together
  bool apart_in_role = false;      // not all of these
};

class Uses {
 public:
  explicit Uses(const Kernel& kernel) : differences_(kernel) {
    find_homes(kernel.body, count_uses(kernel.body));
    visit(kernel.body, {});
  }

  bool is_own(const Buffer& buffer) const {
    const auto found = uses_.find(memory_of(buffer));
    if (buffer->scope != Scope::fragment || found == uses_.end()) return false;
    const Use& use = found->second;
    return use.moved && (use.differently || (use.stored && use.filled));
  }
  // Stores that all threads do alike, to what tile operators use.
  bool is_one_store(const Stmt& s) const { return alike_.count(s.get()) > 0; }

 private:
  const ThreadDifferences differences_;
  std::unordered_map<const BufferData*, Use> uses_;
  std::unordered_set<const StmtNode*> alike_;
  std::unordered_map<const BufferData*, const StmtNode*> homes_;  // the only role that a fragment is used in

  bool is_role(const Stmt& branch) const {
    bool together = false;
    walk(
        branch, [&](const Stmt& part) { together |= is_collective(part); }, [](const Expr&) {});
    return together;
  }

  Place inside(const Place& place, const Stmt& s, const Stmt& child) const {
    if (!differences_.divides(s)) return place;
    if (as<If>(s) && is_role(child)) return {true, child.get(), false};
    return {true, place.role, true};
  }

  // A branch is the home of what is used nowhere else; the innermost one of several.
  void find_homes(const Stmt& s, const std::unordered_map<const BufferData*, int>& all) {
    if (is_collective(s)) return;
    for (const Stmt& child : bodies(s)) {
      if (as<If>(s) && differences_.divides(s) && is_role(child))
        for (const auto& [buffer, uses] : count_uses(child))
          if (uses == all.at(buffer)) homes_[buffer] = child.get();
      find_homes(child, all);
    }
  }

  static std::unordered_map<const BufferData*, int> count_uses(const Stmt& s) {
    std::unordered_map<const BufferData*, int> uses;
    walk(
        s,
        [&](const Stmt& part) {
          const Accesses accesses = region_accesses(part);
          for (const auto* regions : {&accesses.reads, &accesses.writes})
            for (const Region* region : *regions) ++uses[memory_of(*region->buffer)];
          if (const auto* n = as<Store>(part)) ++uses[memory_of(*n->buffer)];
        },
        [&](const Expr& part) {
          if (const auto* n = as<Load>(part)) ++uses[memory_of(*n->buffer)];
        });
    return uses;
  }

  // Whether some of those for whom the fragment is there are not.
  bool are_apart(const Place& place, const BufferData& buffer) const {
    const auto home = homes_.find(memory_of(buffer));
    const bool in_role = home != homes_.end() && home->second == place.role;
    return in_role ? place.apart_in_role : place.apart;
  }

  Use* use_of(const BufferData& buffer) {
    return buffer.scope == Scope::fragment ? &uses_[memory_of(buffer)] : nullptr;
  }

  void visit(const Stmt& s, const Place& place) {
    if (is_collective(s)) return collective(s, place);
    if (const auto* n = as<Store>(s)) store(s, *n, place);
    if (const auto* n = as<Atomic>(s)) update_atomically(*n, place);
    if (as<AllReduce>(s) || as<LoadMatrix>(s) || as<Mma>(s))
      for (const Region* region : region_accesses(s).writes) update(*region->buffer);
    for (const Stmt& child : bodies(s)) visit(child, inside(place, s, child));
  }

  void store(const Stmt& s, const Store& n, const Place& place) {
    Use* use = use_of(*n.buffer);
    if (use == nullptr) return;
    const bool different =
        are_apart(place, *n.buffer) || differences_.differs(n.indices) || differences_.differs(n.value);
    use->stored = true;
    use->differently |= different;
    if (!different && !differences_.may_be_own(*n.buffer)) alike_.insert(s.get());
  }

  // Registers are of one thread: what it updates there no other one sees, as if it stored the result.
  void update_atomically(const Atomic& n, const Place& place) {
    Use* use = use_of(*n.element.buffer);
    if (use == nullptr || memory_of(*n.element.buffer)->reducer) return;
    if (n.op == AtomicOp::load && !differences_.may_be_own(*n.element.buffer)) return;
    use->stored = true;
    use->differently |= are_apart(place, *n.element.buffer) || differences_.may_be_own(*n.element.buffer) ||
                        differences_.differs(n.element.start) || (n.value && differences_.differs(n.value));
  }

  // Of what no tile operator uses, each thread changes its own.
  void update(const BufferData& buffer) {
    Use* use = use_of(buffer);
    if (use != nullptr && differences_.may_be_own(buffer)) use->stored = use->differently = true;
  }

  void collective(const Stmt& s, const Place& place) {
    const bool fills = as<Fill>(s), moves = fills || box_form(s) || set_by_loop(s);
    bool different = false;
    const auto note = [&](const BufferData& buffer) {
      if (Use* use = use_of(buffer)) {
        use->filled &= fills;
        use->moved &= moves;
        use->differently |= different || are_apart(place, buffer);
      }
    };
    walk(
        s, [](const Stmt&) {}, [&](const Expr& e) { different |= moves && differences_.differs(e); });
    walk(
        s,
        [&](const Stmt& part) {
          const Accesses accesses = region_accesses(part);
          for (const Region* region : accesses.reads) note(*region->buffer);
          for (const Region* region : accesses.writes) note(*region->buffer);
          if (const auto* n = as<Store>(part)) note(*n->buffer);
        },
        [&](const Expr& part) {
          if (const auto* n = as<Load>(part)) note(*n->buffer);
        });
  }
};

// Puts buffers in the place of others.
class Replacement : public Rewriter {
 public:
  explicit Replacement(const std::unordered_map<const BufferData*, Buffer>& fresh) : fresh_(fresh) {}
  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    const auto* n = as<Load>(e);
    if (!n || fresh_.count(n->buffer.get()) == 0) return rewrite_children(e);
    return load(fresh_.at(n->buffer.get()), rewrite_all(n->indices), e->span);
  }
  Stmt rewrite(const Stmt& s) override {
    if (sets_own(s)) return in_each_thread(*as<For>(s), s->span);
    const auto* n = as<Store>(s);
    if (!n || fresh_.count(n->buffer.get()) == 0) return rewrite_children(s);
    return make_stmt(Store{fresh_.at(n->buffer.get()), rewrite_all(n->indices), rewrite(n->value)}, s->span);
  }

 private:
  const std::unordered_map<const BufferData*, Buffer>& fresh_;

  bool sets_own(const Stmt& s) const {
    const BufferData* set = set_by_loop(s);
    return set && fresh_.count(set) > 0;
  }

  Stmt in_each_thread(const For& loop, Span span) {
    Stmt body = rewrite(loop.body);
    for (size_t k = loop.vars.size(); k-- > 0;)
      body = make_stmt(For{LoopKind::serial, {loop.vars[k]}, {rewrite(loop.extents[k])}, 0, std::move(body)}, span);
    return body;
  }

  Region rewrite_region(const Region& region) override {
    Region result = Rewriter::rewrite_region(region);
    const auto fresh = fresh_.find(region.buffer.get());
    if (fresh != fresh_.end()) result.buffer = fresh->second;
    return result;
  }
};

class OneStores : public Rewriter {
 public:
  explicit OneStores(const Uses& uses) : uses_(uses) {}
  using Rewriter::rewrite;

  Stmt rewrite(const Stmt& s) override {
    if (!uses_.is_one_store(s)) return rewrite_children(s);
    const Stmt body = make_stmt(Block{{s}}, s->span);
    return make_stmt(For{LoopKind::parallel, {make_var("once", kInt32)}, {int_imm(1)}, 0, body}, s->span);
  }

 private:
  const Uses& uses_;
};

// The kernel with its own fragments as local buffers; the same body if there are none.
Kernel with_own(const Kernel& kernel, const Uses& uses) {
  std::unordered_map<const BufferData*, Buffer> fresh;
  Kernel result = kernel;
  for (Buffer& buffer : result.allocations) {
    if (!uses.is_own(buffer)) continue;
    BufferData data = *buffer;
    data.scope = Scope::local;
    if (data.base) data.base = fresh.at(data.base.get());
    buffer = fresh.emplace(buffer.get(), std::make_shared<BufferData>(std::move(data))).first->second;
  }
  if (!fresh.empty()) result.body = Replacement(fresh).rewrite(kernel.body);
  return result;
}

// The kernel itself if there is nothing to tell apart.
Kernel with_fragments(const Kernel& kernel) {
  if (kernel.thread_vars.empty()) return kernel;
  Kernel current = with_common_quotients(kernel);
  current.body = thread_private_loops(current.body);
  while (true) {
    const Uses uses(current);
    Kernel next = with_own(current, uses);
    if (next.body == current.body) {
      current.body = OneStores(uses).rewrite(current.body);
      return current.body == kernel.body ? kernel : current;
    }
    // What is made of a fragment that differs between threads differs too.
    current = std::move(next);
  }
}

}  // namespace

Program thread_fragments(const Program& program) {
  Program result = program;
  for (Kernel& kernel : result.kernels) kernel = with_fragments(kernel);
  return result;
}

}  // namespace tilepilot::passes
