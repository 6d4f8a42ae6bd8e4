#include "compiler/passes/threads/thread_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/search.h"
#include "compiler/passes/element_form.h"
#include "compiler/passes/threads/roles.h"
#include "compiler/passes/threads/thread_exchange.h"
#include "compiler/passes/threads/thread_private_loops.h"
#include "compiler/passes/threads/thread_values.h"
#include "compiler/passes/threads/uniformity.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

// Without thread variables all threads do the same: they need not wait for each other, but count at barriers.
class WithoutThreads : public Rewriter {
 public:
  explicit WithoutThreads(int64_t threads) : threads_(threads) {}
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    if (const auto* sync = as<Sync>(s)) return sync->scope == SyncScope::grid ? s : nullptr;
    const auto* loop = as<For>(s);
    const bool parallel = loop && loop->kind == LoopKind::parallel;
    const int64_t outside = parallel ? std::exchange(threads_, 1) : threads_;
    const Stmt result = as<Barrier>(s) ? counted(*as<Barrier>(s), s->span) : rewrite_children(s);
    threads_ = outside;
    return result;
  }

 private:
  int64_t threads_;

  Stmt counted(Barrier node, Span span) const {
    if (node.threads == 0) node.threads = threads_;
    return make_stmt(std::move(node), span);
  }
};

// `x < bound` and `x == 0`, which is `x < 1`, as (x, bound).
std::optional<std::pair<Var, Expr>> upper_guard(const Expr& condition) {
  const auto* compare = std::get_if<Binary>(&condition->node);
  const auto* ref = compare ? std::get_if<VarRef>(&compare->left->node) : nullptr;
  if (!ref) return std::nullopt;
  if (compare->op == BinaryOp::lt) return std::pair(ref->var, compare->right);
  const bool first_only = compare->op == BinaryOp::eq && constant_int(compare->right) == 0;
  if (!first_only) return std::nullopt;
  return std::pair(ref->var, int_imm(1, ref->var->type, condition->span));
}

bool stores_to_loads_of(const Expr& e, const Stmt& body) {
  std::unordered_set<const BufferData*> loaded;
  walk(e, [&](const Expr& part) {
    if (const auto* n = std::get_if<Load>(&part->node)) loaded.insert(n->buffer.get());
  });
  bool stores = false;
  walk(
      body,
      [&](const Stmt& s) {
        const auto* n = as<Store>(s);
        stores |= n && loaded.count(n->buffer.get()) > 0;
        for (const Region* region : region_accesses(s).writes) stores |= loaded.count(region->buffer.get()) > 0;
      },
      [](const Expr&) {});
  return stores;
}

// A region that is one guard `if tx < bound`, the bound the same for all threads, is a shorter loop.
void leave_out_idle_threads(For& region) {
  const std::vector<Stmt> body = statements(region.body);
  const auto* guard = body.size() == 1 ? as<If>(body[0]) : nullptr;
  const auto bound = guard && !guard->otherwise ? upper_guard(guard->condition) : std::nullopt;
  const auto is_in_bound = [&](const Var& var) { return mentions(bound->second, var); };
  if (!bound || std::any_of(region.vars.begin(), region.vars.end(), is_in_bound)) return;
  if (stores_to_loads_of(bound->second, guard->then)) return;
  const auto axis = std::find(region.vars.begin(), region.vars.end(), bound->first) - region.vars.begin();
  if (axis == static_cast<std::ptrdiff_t>(region.vars.size())) return;
  Expr& extent = region.extents[static_cast<size_t>(axis)];
  const Span span = guard->condition->span;
  const Expr none = int_imm(0, extent->type, span);
  extent = binary(BinaryOp::min, extent, binary(BinaryOp::max, bound->second, none, span), span);
  region.body = guard->then;
}

// How a variable that a thread binds reaches the regions after its own.
struct Kept {
  Expr value;              // of a let without loads: computed again
  Buffer buffer;           // else: one element a thread
  const StmtNode* region;  // where it is computed
  bool used_later = false;
};

// The thread axes of a region, the first dimension innermost; axes of extent 1 are left out.
struct ThreadLoop {
  std::vector<Var> vars;
  std::vector<Expr> extents;
  std::unordered_map<const VarData*, Expr> indices;  // what stands for each thread variable
};

class Splitter {
 public:
  // `others`: there are other roles, with which barriers are shared.
  Splitter(const Kernel& kernel, const Uniformity& uniformity, bool others)
      : kernel_(kernel), uniformity_(uniformity), others_(others) {}

  Kernel run() {
    find_kept(kernel_.body);
    Kernel result = kernel_;
    make_buffers_thread_private(result);
    result.body = make_stmt(Block{split(statements(kernel_.body))}, kernel_.body->span);
    for (auto& [var, kept] : kept_) {
      if (kept.buffer && kept.used_later) result.allocations.push_back(kept.buffer);
    }
    result.thread_vars.clear();
    return result;
  }

 private:
  bool is_together(const Stmt& s) const {
    if (uniformity_.collective.count(s.get()) > 0) return true;
    const auto* let = as<Let>(s);
    return let && uniformity_.shared_lets.count(let->var.get()) > 0;
  }

  // First round: which lets outlive the region that computes them
  // ------------------------------------------------------

  // Regions are named by their first statement.
  void find_kept(const Stmt& body) {
    const StmtNode* region = nullptr;
    for (const Stmt& s : statements(body)) {
      if (is_together(s)) {
        region = nullptr;
        for_each_body(s, [&](const Stmt& inner) { find_kept(inner); });
        continue;
      }
      if (region == nullptr) region = s.get();
      note_uses(s, region);
      if (const Var var = bound_variable(*s)) kept_.emplace(var.get(), kept(s, var, region));
    }
  }

  void note_uses(const Stmt& s, const StmtNode* region) {
    walk(
        s, [](const Stmt&) {},
        [&](const Expr& e) {
          const auto* ref = std::get_if<VarRef>(&e->node);
          const auto found = ref ? kept_.find(ref->var.get()) : kept_.end();
          if (found != kept_.end() && found->second.region != region) use_later(found->second);
        });
  }

  // What a value that is computed again is made of is needed again too.
  void use_later(Kept& kept) {
    if (kept.used_later) return;
    kept.used_later = true;
    if (kept.buffer) return;
    walk(kept.value, [&](const Expr& part) {
      const auto* ref = std::get_if<VarRef>(&part->node);
      const auto found = ref ? kept_.find(ref->var.get()) : kept_.end();
      if (found != kept_.end()) use_later(found->second);
    });
  }

  Kept kept(const Stmt& s, const Var& var, const StmtNode* region) const {
    const auto* let = as<Let>(s);
    if (let && !has_load(let->value)) return {let->value, nullptr, region};
    BufferData data{var->name, var->type, Scope::local, thread_extents(), {}, s->span, nullptr};
    return {nullptr, std::make_shared<BufferData>(std::move(data)), region};
  }

  template <class F>
  static void for_each_body(const Stmt& s, const F& visit) {
    if (const auto* n = as<For>(s); n && n->kind != LoopKind::parallel) visit(n->body);
    if (const auto* n = as<While>(s)) visit(n->body);
    if (as<Block>(s)) visit(s);
    if (const auto* n = as<If>(s)) {
      visit(n->then);
      if (n->otherwise) visit(n->otherwise);
    }
  }

  // An element for each thread
  // -----------------------------------------------------------------------------------------

  std::vector<Expr> thread_extents() const {
    std::vector<Expr> extents;
    for (size_t axis = kernel_.threads.size(); axis-- > 0;) {
      if (kernel_.threads[axis] > 1) extents.push_back(int_imm(kernel_.threads[axis], kInt32));
    }
    if (extents.empty()) extents.push_back(int_imm(1, kInt32));
    return extents;
  }

  // The last axes, along which a loop over the threads goes through memory. Of buffers that share theirs the first
  // ones: so what a thread sees by one of them it sees by the other.
  void make_buffers_thread_private(Kernel& kernel) {
    sharing_ = sharing_buffers(kernel);
    const std::vector<Expr> threads = thread_extents();
    for (Buffer& buffer : kernel.allocations) {
      if (uniformity_.thread_private_buffers.count(buffer.get()) == 0) continue;
      BufferData data = *buffer;
      data.shape.insert(sharing_.count(buffer.get()) > 0 ? data.shape.begin() : data.shape.end(), threads.begin(),
                        threads.end());
      if (data.base) data.base = own_.at(data.base.get());
      auto fresh = std::make_shared<BufferData>(std::move(data));
      own_.emplace(buffer.get(), fresh);
      buffer = fresh;
    }
  }

  ThreadLoop thread_loop() const {
    ThreadLoop loop;
    for (size_t axis = kernel_.threads.size(); axis-- > 0;) {
      const Var& var = kernel_.thread_vars[axis];
      if (kernel_.threads[axis] == 1) {
        loop.indices.emplace(var.get(), int_imm(0, var->type));
        continue;
      }
      loop.vars.push_back(make_var(var->name, var->type));
      loop.extents.push_back(int_imm(kernel_.threads[axis], var->type));
      loop.indices.emplace(var.get(), var_ref(loop.vars.back()));
    }
    if (loop.vars.empty()) {
      loop.vars.push_back(make_var("t", kInt32));
      loop.extents.push_back(int_imm(1, kInt32));
    }
    return loop;
  }

  // Second round
  // ---------------------------------------------------------------------------------------------------------

  std::vector<Stmt> split(const std::vector<Stmt>& body) {
    std::vector<Stmt> result, open;
    const auto close = [&] {
      if (!open.empty()) result.push_back(region(std::exchange(open, {})));
    };
    for (const Stmt& s : body) {
      if (!is_together(s)) {
        open.push_back(s);
        continue;
      }
      close();
      const auto* sync = as<Sync>(s);
      const bool stays = !sync || (others_ && sync->scope == SyncScope::block);
      if (stays) result.push_back(inside(s));
    }
    close();
    return result;
  }

  // What threads do together, with its bodies split.
  Stmt inside(const Stmt& s) {
    const auto body = [&](const Stmt& inner) { return make_stmt(Block{split(statements(inner))}, inner->span); };
    if (const auto* n = as<For>(s); n && n->kind != LoopKind::parallel)
      return make_stmt(For{n->kind, n->vars, n->extents, n->num_stages, body(n->body)}, s->span);
    if (const auto* n = as<While>(s)) return make_stmt(While{n->condition, body(n->body)}, s->span);
    if (as<Block>(s)) return body(s);
    if (const auto* n = as<If>(s)) {
      const Stmt then = body(n->then);
      return make_stmt(If{n->condition, then, n->otherwise ? body(n->otherwise) : nullptr}, s->span);
    }
    return s;
  }

  class InRegion;
  Stmt region(const std::vector<Stmt>& body);
  void keep(const Stmt& s, InRegion& rewriter, std::vector<Stmt>& body) const;

  const Kernel& kernel_;
  const Uniformity& uniformity_;
  const bool others_;
  std::unordered_map<const VarData*, Kept> kept_;
  std::unordered_map<const BufferData*, Buffer> own_;
  std::unordered_set<const BufferData*> sharing_;
};

// Rewrites the statements of one region for the thread that the loop's variables name.
class Splitter::InRegion : public Rewriter {
 public:
  InRegion(const Splitter& splitter, const ThreadLoop& loop, const StmtNode* region)
      : splitter_(splitter), loop_(loop), region_(region) {}
  using Rewriter::rewrite;

  Stmt rewrite(const Stmt& s) override {
    if (const auto* atomic = as<Atomic>(s)) return rewrite(*atomic, s);
    if (as<Barrier>(s)) {
      Barrier one = *as<Barrier>(rewrite_children(s));
      one.threads = 1;
      return make_stmt(std::move(one), s->span);
    }
    const auto* store = as<Store>(s);
    const auto own = store ? splitter_.own_.find(store->buffer.get()) : splitter_.own_.end();
    if (own == splitter_.own_.end()) return rewrite_children(s);
    return make_stmt(Store{own->second, element(store->buffer, store->indices), rewrite(store->value)}, s->span);
  }

  Stmt rewrite(const Atomic& atomic, const Stmt& s) {
    const auto own = splitter_.own_.find(atomic.element.buffer.get());
    if (own == splitter_.own_.end()) return rewrite_children(s);
    Atomic result = atomic;
    result.element.buffer = own->second;
    result.element.start = element(atomic.element.buffer, atomic.element.start);
    result.element.extent.resize(result.element.start.size(), 1);
    if (result.value) result.value = rewrite(result.value);
    return make_stmt(std::move(result), s->span);
  }

  Expr rewrite(const Expr& e) override {
    if (const auto* ref = std::get_if<VarRef>(&e->node)) return value_of(*ref, e);
    const auto* load = std::get_if<Load>(&e->node);
    const auto own = load ? splitter_.own_.find(load->buffer.get()) : splitter_.own_.end();
    if (own == splitter_.own_.end()) return rewrite_children(e);
    return ir::load(own->second, element(load->buffer, load->indices), e->span);
  }

  // What this thread has of a buffer.
  std::vector<Expr> element(const Buffer& buffer, const std::vector<Expr>& at) {
    std::vector<Expr> indices = rewrite_all(at), thread = own_element();
    indices.insert(splitter_.sharing_.count(buffer.get()) > 0 ? indices.begin() : indices.end(), thread.begin(),
                   thread.end());
    return indices;
  }
  std::vector<Expr> own_element() const {
    std::vector<Expr> indices;
    for (const Var& var : loop_.vars) indices.push_back(var_ref(var));
    return indices;
  }

  // Lets of earlier regions, in the order in which they need each other.
  std::vector<Stmt> head;

 private:
  Expr value_of(const VarRef& ref, const Expr& e) {
    if (const auto index = loop_.indices.find(ref.var.get()); index != loop_.indices.end()) return index->second;
    const auto kept = splitter_.kept_.find(ref.var.get());
    if (kept == splitter_.kept_.end() || kept->second.region == region_) return e;
    const auto [again, fresh] = again_.emplace(ref.var.get(), nullptr);
    if (fresh) {
      const Buffer& buffer = kept->second.buffer;
      const Expr value = buffer ? ir::load(buffer, own_element(), e->span) : rewrite(kept->second.value);
      const Var var = make_var(ref.var->name, ref.var->type);
      head.push_back(make_stmt(Let{var, value}, e->span));
      again_[ref.var.get()] = var;
    }
    return var_ref(again_[ref.var.get()], e->span);
  }

  const Splitter& splitter_;
  const ThreadLoop& loop_;
  const StmtNode* region_;
  std::unordered_map<const VarData*, Var> again_;
};

Stmt Splitter::region(const std::vector<Stmt>& body) {
  const ThreadLoop loop = thread_loop();
  InRegion rewriter(*this, loop, body.front().get());
  std::vector<Stmt> inner;
  for (const Stmt& s : body) {
    inner.push_back(rewriter.rewrite(s));
    if (bound_variable(*s)) keep(s, rewriter, inner);
  }
  inner.insert(inner.begin(), rewriter.head.begin(), rewriter.head.end());
  const Span span = body.front()->span;
  For region{LoopKind::parallel, loop.vars, loop.extents, 0, make_stmt(Block{std::move(inner)}, span)};
  leave_out_idle_threads(region);
  return make_stmt(std::move(region), span);
}

void Splitter::keep(const Stmt& s, InRegion& rewriter, std::vector<Stmt>& body) const {
  const Var var = bound_variable(*s);
  const Kept& kept = kept_.at(var.get());
  if (!kept.buffer || !kept.used_later) return;
  body.push_back(make_stmt(Store{kept.buffer, rewriter.own_element(), var_ref(var)}, s->span));
}

// Barriers of only some threads of the block, or that count more than threads.
bool has_own_barriers(const Kernel& kernel) {
  return contains(kernel.body, [&](const Stmt& s) {
    const auto* sync = as<Sync>(s);
    return as<Barrier>(s) || (sync && sync->threads != 0 && sync->threads != thread_count(kernel));
  });
}

Result<Kernel> in_regions(const Kernel& kernel, bool others) {
  if (kernel.thread_vars.empty()) {
    Kernel result = kernel;
    result.body = WithoutThreads(thread_count(kernel)).rewrite(kernel.body);
    return result;
  }
  const Kernel lowered = exchange_through_tiles(kernel);
  const Uniformity uniformity = TRY(find_uniformity(lowered));
  return Splitter(lowered, uniformity, others).run();
}

// Roles run for threads, whether the program names these or not.
Kernel with_thread_vars(const Kernel& kernel) {
  Kernel result = kernel;
  if (!kernel.thread_vars.empty() || !contains<Roles>(kernel.body)) return result;
  for (size_t axis = 0; axis < kernel.threads.size(); ++axis) result.thread_vars.push_back(make_var("t", kInt32));
  return result;
}

// What holds an address would be a buffer of each thread's own.
Status check_addresses(const Kernel& kernel) {
  for (const Buffer& b : kernel.allocations) {
    if (b->address)
      return make_error(DiagnosticKind::unsupported_tile_feature, b->span,
                        fmt::format("`{}` is memory by its address, in a kernel that names its threads", b->name),
                        "use tile operators and `T.Parallel`, or pass the tensor itself");
  }
  return {};
}

Result<Kernel> in_regions(const Kernel& kernel) {
  Kernel lowered = with_thread_vars(kernel);
  if (!lowered.thread_vars.empty()) TRY(check_addresses(kernel));
  if (!lowered.thread_vars.empty()) lowered.body = thread_private_loops(lowered.body);
  const std::vector<Role> roles = TRY(split_roles(lowered));
  const bool concurrent = roles.size() > 1 || has_own_barriers(kernel);
  if (!concurrent) return in_regions(roles.front().kernel, false);
  Concurrent body;
  std::unordered_set<const BufferData*> known;
  lowered.allocations.clear();
  lowered.thread_vars.clear();
  for (const auto& [role, start] : roles) {
    const Kernel done = TRY(in_regions(role, true));
    body.roles.push_back({thread_count(role), done.body});
    for (const Buffer& buffer : done.allocations) {
      if (known.insert(buffer.get()).second) lowered.allocations.push_back(buffer);
    }
  }
  lowered.body = make_stmt(Block{{make_stmt(std::move(body), kernel.body->span)}}, kernel.body->span);
  return lowered;
}

}  // namespace

Result<Program> thread_regions(const Program& program) {
  Program result = program;
  for (Kernel& kernel : result.kernels) kernel = TRY(in_regions(kernel));
  return result;
}

}  // namespace tilepilot::passes
