#include "compiler/passes/threads/roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/threads/thread_differences.h"
#include "compiler/passes/threads/thread_values.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

constexpr int64_t kWarpGroup = 128;
constexpr size_t kMostRoles = 32;
using RoleSet = uint32_t;

bool is_block_work(const Stmt& s) {
  const auto* loop = as<For>(s);
  return is_tile_operator(*s) || (loop && loop->kind == LoopKind::parallel);
}

// Some threads of a block may do this, and others not: unlike barriers and reductions of the whole block.
bool is_work_of_some(const Stmt& s) {
  const auto* sync = as<Sync>(s);
  const auto* barrier = as<Barrier>(s);
  return is_block_work(s) || is_warp_operation(*s) || (sync && sync->threads != 0) ||
         (barrier && barrier->op == BarrierOp::wait);
}

bool contains_work_of_some(const Stmt& body) { return contains(body, is_work_of_some); }

Error unsupported(Span span, std::string message, std::string hint) {
  return make_error(DiagnosticKind::unsupported_tile_feature, span, std::move(message), std::move(hint));
}

// Which threads are of which role.
class RoleMap {
 public:
  explicit RoleMap(const Kernel& kernel)
      : kernel_(kernel), values_(kernel), ways_(static_cast<size_t>(thread_count(kernel))) {}

  Status run() {
    find_choices(kernel_.body);
    std::vector<std::vector<bool>> known;
    for (size_t thread = 0; thread < ways_.size(); ++thread) {
      const auto found = std::find(known.begin(), known.end(), ways_[thread]);
      const auto role = static_cast<size_t>(found - known.begin());
      if (found == known.end()) {
        known.push_back(ways_[thread]);
        roles_.emplace_back();
      }
      roles_[role].push_back(static_cast<int64_t>(thread));
    }
    if (roles_.size() <= kMostRoles) return {};
    return unsupported(first_choice_,
                       fmt::format("the threads of a block take {} different paths to their barriers", roles_.size()),
                       "let whole warps or warpgroups go the same way");
  }

  bool empty() const { return choices_.empty(); }
  size_t size() const { return roles_.size(); }
  const std::vector<int64_t>& threads(size_t role) const { return roles_[role]; }
  // Whether a role takes the choice that this statement is; nothing if it is none.
  std::optional<bool> choice(const Stmt& s, size_t role) const {
    const auto found = choices_.find(s.get());
    if (found == choices_.end()) return std::nullopt;
    return ways_[static_cast<size_t>(roles_[role].front())][found->second];
  }

 private:
  const Kernel& kernel_;
  const ThreadValues values_;
  std::vector<std::vector<bool>> ways_;                  // of each thread, by choice
  std::unordered_map<const StmtNode*, size_t> choices_;  // their numbers
  std::vector<std::vector<int64_t>> roles_;
  Span first_choice_;

  void find_choices(const Stmt& body) {
    walk(
        body,
        [&](const Stmt& s) {
          if (const auto* n = as<Roles>(s)) add_choice(s, [&](int64_t thread) { return is_for(*n, thread); });
          const auto* n = as<If>(s);
          if (!n || !contains_work_of_some(s)) return;
          // Only conditions about the thread that are known for each of them.
          const Expr condition = values_.expanded(n->condition);
          const auto taken = values_.names_thread(condition) ? values_.of(condition) : std::nullopt;
          if (taken) add_choice(s, [&](int64_t thread) { return (*taken)[static_cast<size_t>(thread)] != 0; });
        },
        [](const Expr&) {});
  }

  template <class Taken>
  void add_choice(const Stmt& s, const Taken& taken) {
    if (!choices_.emplace(s.get(), choices_.size()).second) return;
    if (!first_choice_.valid()) first_choice_ = s->span;
    for (size_t thread = 0; thread < ways_.size(); ++thread)
      ways_[thread].push_back(taken(static_cast<int64_t>(thread)));
  }

  static bool is_for(const Roles& n, int64_t thread) {
    return std::find(n.groups.begin(), n.groups.end(), int(thread / kWarpGroup)) != n.groups.end();
  }
};

// The threads of a role along each axis of the block.
struct ThreadBox {
  std::vector<int64_t> start, extent;
};

std::optional<ThreadBox> box_of(const Kernel& kernel, const std::vector<int64_t>& threads) {
  ThreadBox box;
  int64_t below = 1, size = 1;
  for (const int64_t extent : kernel.threads) {
    int64_t first = extent, last = 0;
    for (const int64_t thread : threads) {
      const int64_t at = thread / below % extent;
      first = std::min(first, at);
      last = std::max(last, at);
    }
    box.start.push_back(first);
    box.extent.push_back(last - first + 1);
    size *= last - first + 1;
    below *= extent;
  }
  if (size != static_cast<int64_t>(threads.size())) return std::nullopt;
  return box;
}

// Who comes to each statement, and who uses each buffer outside of what several roles do together.
class Reach {
 public:
  Reach(const Kernel& kernel, const RoleMap& roles) : roles_(roles) {
    RoleSet all = 0;
    for (size_t role = 0; role < roles.size(); ++role) all |= RoleSet{1} << role;
    visit(kernel.body, all);
  }

  // None for what stands inside of what threads do together.
  RoleSet at(const Stmt& s) const {
    const auto found = here_.find(s.get());
    return found == here_.end() ? 0 : found->second;
  }
  bool is_joint(const Stmt& s) const { return is_block_work(s) && is_several(at(s)); }

  // A fragment lies in the registers of the threads that use it.
  bool is_own_in_each(const Buffer& buffer) const {
    return buffer->scope == Scope::local || (is_used_apart(buffer) && joint_.count(memory_of(buffer)) == 0);
  }
  bool is_split(const Buffer& buffer) const {
    return is_used_apart(buffer) && joint_.count(memory_of(buffer)) > 0 && written_apart_.count(memory_of(buffer)) > 0;
  }
  bool is_written_jointly(const Buffer& buffer) const { return written_jointly_.count(memory_of(buffer)) > 0; }

 private:
  const RoleMap& roles_;
  std::unordered_map<const StmtNode*, RoleSet> here_;
  std::unordered_map<const BufferData*, RoleSet> apart_;
  std::unordered_set<const BufferData*> joint_, written_jointly_, written_apart_;

  static bool is_several(RoleSet set) { return (set & (set - 1)) != 0; }
  bool is_used_apart(const Buffer& buffer) const {
    const auto found = apart_.find(memory_of(buffer));
    return buffer->scope == Scope::fragment && found != apart_.end() && is_several(found->second);
  }

  void visit(const Stmt& s, RoleSet here) {
    here_[s.get()] = here;
    if (is_block_work(s)) return note(s, here);
    if (const auto* n = as<Block>(s)) {
      for (const Stmt& child : n->body) visit(child, here);
      return;
    }
    if (const auto* n = as<Roles>(s)) return visit(n->body, here & takers(s, true));
    if (const auto* n = as<If>(s)) {
      const bool choice = roles_.choice(s, 0).has_value();
      visit(n->then, choice ? here & takers(s, true) : here);
      if (n->otherwise) visit(n->otherwise, choice ? here & takers(s, false) : here);
      return note_exprs(n->condition, here);
    }
    if (const auto* n = as<For>(s)) visit(n->body, here);
    if (const auto* n = as<While>(s)) visit(n->body, here);
    if (!as<For>(s) && !as<While>(s)) note(s, here);
  }

  RoleSet takers(const Stmt& s, bool way) const {
    RoleSet result = 0;
    for (size_t role = 0; role < roles_.size(); ++role) {
      if (roles_.choice(s, role) == way) result |= RoleSet{1} << role;
    }
    return result;
  }

  void note_exprs(const Expr& e, RoleSet here) {
    walk(e, [&](const Expr& part) {
      if (const auto* n = std::get_if<Load>(&part->node)) use(n->buffer, here, false, false);
    });
  }

  void note(const Stmt& s, RoleSet here) {
    const bool joint = is_joint(s);
    walk(
        s,
        [&](const Stmt& part) {
          const Accesses accesses = region_accesses(part);
          for (const Region* region : accesses.reads) use(region->buffer, here, joint, false);
          for (const Region* region : accesses.writes) use(region->buffer, here, joint, true);
          if (const auto* n = as<Store>(part)) use(n->buffer, here, joint, true);
        },
        [&](const Expr& part) {
          if (const auto* n = std::get_if<Load>(&part->node)) use(n->buffer, here, joint, false);
        });
  }

  void use(const Buffer& buffer, RoleSet here, bool joint, bool writes) {
    if (joint) {
      joint_.insert(memory_of(buffer));
    } else {
      apart_[memory_of(buffer)] |= here;
    }
    if (writes) (joint ? written_jointly_ : written_apart_).insert(memory_of(buffer));
  }
};

// What one role does, with variables and buffers of its own.
class Projection : public Rewriter {
 public:
  Projection(const Kernel& kernel, const RoleMap& roles, const Reach& reach, size_t role)
      : kernel_(kernel), roles_(roles), reach_(reach), role_(role) {}

  Kernel run(const ThreadBox& box) {
    Kernel result = kernel_;
    result.threads = box.extent;
    for (size_t axis = 0; axis < result.thread_vars.size(); ++axis) {
      Var& var = result.thread_vars[axis];
      const Var fresh = make_var(var->name, var->type);
      const Expr index = var_ref(fresh);
      values_[var.get()] =
          box.start[axis] == 0 ? index : binary(BinaryOp::add, index, int_imm(box.start[axis], var->type));
      var = fresh;
    }
    for (Buffer& buffer : result.allocations) buffer = own(buffer);
    result.body = rewrite(kernel_.body);
    const std::vector<Buffer> all = result.allocations;
    std::erase_if(result.allocations, [&](const Buffer& buffer) {
      const auto is_view = [&](const Buffer& other) { return other->base == buffer; };
      return !accesses_any(result.body, {buffer.get()}) && std::none_of(all.begin(), all.end(), is_view);
    });
    return result;
  }

  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    if (const auto* n = std::get_if<VarRef>(&e->node)) {
      const auto found = values_.find(n->var.get());
      return found == values_.end() ? e : found->second;
    }
    const auto* n = std::get_if<Load>(&e->node);
    const auto own = n ? own_.find(n->buffer.get()) : own_.end();
    return own == own_.end() ? rewrite_children(e) : load(own->second, rewrite_all(n->indices), e->span);
  }

  Region rewrite_region(const Region& region) override {
    Region result = Rewriter::rewrite_region(region);
    const auto own = own_.find(region.buffer.get());
    if (own != own_.end()) result.buffer = own->second;
    return result;
  }

  Stmt rewrite(const Stmt& s) override {
    if (const auto* n = as<Roles>(s)) return roles_.choice(s, role_) == true ? rewrite(n->body) : nullptr;
    if (const auto* n = as<If>(s)) {
      const auto way = roles_.choice(s, role_);
      if (way) return *way ? rewrite(n->then) : n->otherwise ? rewrite(n->otherwise) : nullptr;
    }
    if (const auto* n = as<Block>(s)) return list(*n, s->span);
    return reach_.is_joint(s) ? joint({s}) : renamed(s);
  }

 private:
  const Kernel& kernel_;
  const RoleMap& roles_;
  const Reach& reach_;
  const size_t role_;
  std::unordered_map<const VarData*, Expr> values_;
  std::unordered_map<const BufferData*, Buffer> own_;

  Buffer own(const Buffer& buffer) {
    if (!reach_.is_own_in_each(buffer)) return buffer;
    BufferData data = *buffer;
    if (data.base) data.base = own_.at(data.base.get());
    return own_[buffer.get()] = std::make_shared<BufferData>(std::move(data));
  }

  Var fresh(const Var& var) {
    const Var result = make_var(var->name, var->type);
    values_[var.get()] = var_ref(result);
    return result;
  }

  // Threads that do several things together synchronise before the first and after the last of these.
  Stmt list(const Block& block, Span span) {
    Block result;
    for (size_t k = 0; k < block.body.size();) {
      std::vector<Stmt> together;
      for (; k < block.body.size() && reach_.is_joint(block.body[k]); ++k) {
        if (!together.empty() && reach_.at(block.body[k]) != reach_.at(together.front())) break;
        together.push_back(block.body[k]);
      }
      Stmt part = together.empty() ? rewrite(block.body[k++]) : joint(together);
      if (part) result.body.push_back(std::move(part));
    }
    return make_stmt(std::move(result), span);
  }

  Stmt joint(const std::vector<Stmt>& work) {
    const Stmt& s = work.front();
    const RoleSet set = reach_.at(s);
    RoleSet all = 0;
    int64_t threads = 0;
    for (size_t role = 0; role < roles_.size(); ++role) {
      all |= RoleSet{1} << role;
      if (set & (RoleSet{1} << role)) threads += static_cast<int64_t>(roles_.threads(role).size());
    }
    // Numbers past those that programs may use.
    constexpr int64_t kFirstOwnBarrier = 16;
    const Stmt sync = make_stmt(
        set == all ? Sync{} : Sync{SyncScope::block, kFirstOwnBarrier + static_cast<int64_t>(set), threads}, s->span);
    const bool is_first = (set & ((RoleSet{1} << role_) - 1)) == 0;
    Block block{{sync}};
    for (const Stmt& one : work)
      if (is_first) block.body.push_back(renamed(one));
    block.body.push_back(sync);
    return make_stmt(std::move(block), s->span);
  }

  // The statement with its children rewritten, binding a variable of this role's own.
  Stmt renamed(const Stmt& s) {
    if (const auto* loop = as<For>(s)) {
      For result = *loop;
      result.extents = rewrite_all(loop->extents);
      for (Var& var : result.vars) var = fresh(var);
      const Stmt body = rewrite(loop->body);
      result.body = body ? body : make_stmt(Block{}, s->span);
      return make_stmt(std::move(result), s->span);
    }
    const Stmt rewritten = rewrite_children(s);
    StmtNode node = *rewritten;
    if (auto* n = std::get_if<Store>(&node.node)) {
      const auto own = own_.find(n->buffer.get());
      if (own == own_.end()) return rewritten;
      n->buffer = own->second;
    } else if (auto* let = std::get_if<Let>(&node.node)) {
      let->var = fresh(let->var);
    } else if (auto* atomic = std::get_if<Atomic>(&node.node); atomic && atomic->previous) {
      atomic->previous = fresh(atomic->previous);
    } else if (auto* shuffle = std::get_if<Shuffle>(&node.node)) {
      shuffle->result = fresh(shuffle->result);
    } else if (auto* call = std::get_if<ExternCall>(&node.node); call && call->result) {
      call->result = fresh(call->result);
    } else {
      return rewritten;
    }
    return std::make_shared<StmtNode>(std::move(node));
  }
};

// What roles cannot do together.
class Checker {
 public:
  Checker(const Kernel& kernel, const RoleMap& roles, const Reach& reach)
      : kernel_(kernel), roles_(roles), reach_(reach) {}

  Status run() {
    for (const Buffer& buffer : kernel_.allocations) TRY(check(buffer));
    Status status;
    walk(
        kernel_.body,
        [&](const Stmt& s) {
          if (status.ok() && is_warp_operation(*s)) status = check_warps(s);
          const auto* reduce = as<AllReduce>(s);
          if (status.ok() && reduce && reduce->lanes == 0)
            status = unsupported(s->span, "the threads of a block of several roles are reduced together",
                                 "reduce within warps, or before the roles part");
        },
        [](const Expr&) {});
    return status;
  }

 private:
  const Kernel& kernel_;
  const RoleMap& roles_;
  const Reach& reach_;

  Status check(const Buffer& buffer) const {
    if (reach_.is_split(buffer))
      return unsupported(
          buffer->span,
          fmt::format("several roles of a block use the fragment `{}`, and all threads do so together", buffer->name),
          "give each role a fragment of its own, or use `T.alloc_shared`");
    if (buffer->scope == Scope::local && reach_.is_written_jointly(buffer))
      return unsupported(buffer->span,
                         fmt::format("all threads write `{}` together, of which each role has a copy", buffer->name),
                         "write it where each role works for itself");
    return {};
  }

  Status check_warps(const Stmt& s) const {
    for (size_t role = 0; role < roles_.size(); ++role) {
      if ((reach_.at(s) & (RoleSet{1} << role)) == 0) continue;
      const std::vector<int64_t>& threads = roles_.threads(role);
      const int64_t first = threads.front(), past = threads.back() + 1;
      const bool whole = first % kWarp == 0 && (past % kWarp == 0 || past == thread_count(kernel_)) &&
                         past - first == static_cast<int64_t>(threads.size());
      if (!whole)
        return unsupported(s->span, "the threads of a warp synchronise here, but diverge elsewhere",
                           "let whole warps take the same path to each barrier");
    }
    return {};
  }
};

}  // namespace

Result<std::vector<Role>> split_roles(const Kernel& kernel) {
  RoleMap roles(kernel);
  TRY(roles.run());
  if (roles.empty()) return std::vector<Role>{{kernel, std::vector<int64_t>(kernel.threads.size(), 0)}};
  const Reach reach(kernel, roles);
  if (roles.size() > 1) TRY(Checker(kernel, roles, reach).run());
  std::vector<Role> result;
  for (size_t role = 0; role < roles.size(); ++role) {
    const auto box = box_of(kernel, roles.threads(role));
    if (!box)
      return unsupported(kernel.span, "the threads of a role are no box of the block",
                         "let the role be a range of `threadIdx.x`, or of a later axis for all of those before it");
    result.push_back({Projection(kernel, roles, reach, role).run(*box), box->start});
  }
  return result;
}

}  // namespace tilepilot::passes
