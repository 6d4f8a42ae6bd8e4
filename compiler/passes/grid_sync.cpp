#include "compiler/passes/grid_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/replace_buffers.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/element_form.h"
#include "compiler/passes/iterations/unwritten_reads.h"
#include "compiler/passes/threads/thread_differences.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

bool is_grid_barrier(const Stmt& s) {
  const auto* sync = as<Sync>(s);
  return sync && sync->scope == SyncScope::grid;
}

// The first barrier in it, or null.
Stmt grid_barrier(const Stmt& body) {
  Stmt found;
  walk(
      body,
      [&](const Stmt& s) {
        if (is_grid_barrier(s) && !found) found = s;
      },
      [](const Expr&) {});
  return found;
}

// What stands between two barriers.
struct Part {
  std::vector<Stmt> body;
  std::unordered_set<const BufferData*> buffers;  // roots
  std::unordered_set<const BufferData*> needed;   // of them, those that it may read before it has written them
  std::unordered_set<const VarData*> used;
};

class Splitting {
 public:
  Splitting(const Kernel& kernel, std::vector<Buffer>& workspaces) : kernel_(kernel), workspaces_(workspaces) {}

  Result<std::vector<Kernel>> run() {
    parts_.emplace_back();
    for (const Stmt& s : as<Block>(kernel_.body)->body) {
      if (is_grid_barrier(s)) {
        barrier_ = s->span;
        parts_.emplace_back();
        continue;
      }
      if (const Stmt inner = grid_barrier(s))
        return make_error(DiagnosticKind::unsupported_tile_feature, inner->span,
                          "a barrier of all blocks inside a loop or branch",
                          "let it stand in the kernel itself, or open another `with T.Kernel(...)`");
      add(s);
    }
    for (Part& part : parts_) find_needed(part);
    std::vector<Kernel> result;
    for (size_t i = parts_.size(); i-- > 0;) result.push_back(TRY(kernel_of(i)));  // later ones say what they need
    std::reverse(result.begin(), result.end());
    return result;
  }

 private:
  const Kernel& kernel_;
  std::vector<Buffer>& workspaces_;
  std::unordered_map<const void*, Buffer> kept_;  // by what is kept there: a buffer or a variable
  Span barrier_;
  std::vector<Part> parts_;

  void add(const Stmt& s) {
    Part& part = parts_.back();
    part.body.push_back(s);
    const auto use = [&](const BufferData& buffer) { part.buffers.insert(memory_of(buffer)); };
    walk(
        s,
        [&](const Stmt& inner) {
          const Accesses accesses = region_accesses(inner);
          for (const Region* region : accesses.reads) use(*region->buffer);
          for (const Region* region : accesses.writes) use(*region->buffer);
          if (const auto* n = as<Store>(inner)) use(*n->buffer);
        },
        [&](const Expr& e) {
          if (const auto* n = as<Load>(e)) use(*n->buffer);
          if (const auto* n = as<VarRef>(e)) part.used.insert(n->var.get());
        });
  }

  void find_needed(Part& part) const {
    Kernel alone = kernel_;
    alone.body = make_stmt(Block{part.body}, kernel_.body->span);
    for (const UnwrittenRead& read : unwritten_reads(alone)) part.needed.insert(read.buffer.get());
    for (const BufferData* memory : part.buffers)
      if (memory->scope != Scope::fragment && memory->scope != Scope::local) part.needed.insert(memory);
  }

  Error outlives(const std::string& name) const {
    return make_error(DiagnosticKind::unsupported_tile_feature, barrier_,
                      fmt::format("`{}` is used on both sides of a barrier of all blocks", name),
                      "keep it in global memory, or compute it again after the barrier");
  }

  Result<Kernel> kernel_of(size_t index) {
    const Part& part = parts_[index];
    Kernel result = kernel_;
    result.allocations.clear();
    std::vector<Stmt> body, after;
    Replacements fresh;  // each kernel has buffers of its own
    for (const Buffer& buffer : kernel_.allocations) {
      const auto uses_it = [&](const Part& p) { return p.buffers.count(memory_of(buffer)) > 0; };
      if (!uses_it(part)) continue;
      result.allocations.push_back(buffer);
      const auto at = parts_.begin() + static_cast<std::ptrdiff_t>(index);
      const auto needs_it = [&](const Part& p) { return p.needed.count(memory_of(buffer)) > 0; };
      const bool earlier = std::any_of(parts_.begin(), at, uses_it),
                 later = std::any_of(at + 1, parts_.end(), needs_it);
      if (earlier) fresh.emplace(buffer.get(), copy_of(*buffer, fresh));
      // What is kept is kept whole: also by a part that writes a share of it alone.
      const bool given = earlier && (needs_it(part) || later);
      if (!given && !later) continue;
      if (!may_be_kept(*buffer)) return outlives(buffer->name);
      if (buffer->base) continue;  // with what it is a view of
      if (given) body.push_back(move(buffer, false));
      if (later) after.push_back(move(buffer, true));
    }
    const std::vector<Stmt> values = TRY(values_for(index));
    body.insert(body.end(), values.begin(), values.end());
    body.insert(body.end(), part.body.begin(), part.body.end());
    for (const auto& [var, workspace] : kept_values_[index])
      after.push_back(make_stmt(Store{workspace, place_of(*workspace, {}), var_ref(var)}, barrier_));
    body.insert(body.end(), after.begin(), after.end());
    result.body = make_stmt(Block{std::move(body)}, kernel_.body->span);
    return replace_buffers(result, fresh);
  }

  static Buffer copy_of(const BufferData& buffer, const Replacements& fresh) {
    BufferData copy = buffer;
    if (const auto base = fresh.find(copy.base.get()); base != fresh.end()) copy.base = base->second;
    return std::make_shared<BufferData>(std::move(copy));
  }

  // Values ------------------------------------------------------------------------------------------------------------

  // Values that a part binds and that later ones need, but cannot compute again.
  std::vector<std::vector<std::pair<Var, Buffer>>> kept_values_;

  // What a part needs of the values that the earlier ones bind. One value may need another that stands before it.
  Result<std::vector<Stmt>> values_for(size_t index) {
    kept_values_.resize(parts_.size());
    std::unordered_set<const VarData*> needed = parts_[index].used;
    std::vector<Stmt> values;
    for (size_t p = index; p-- > 0;) {
      const std::vector<Stmt>& earlier = parts_[p].body;
      for (auto s = earlier.rbegin(); s != earlier.rend(); ++s) {
        const Var var = bound_variable(**s);
        if (!var || needed.count(var.get()) == 0) continue;
        const auto* let = as<Let>(*s);
        if (!let || has_load(let->value)) {
          values.push_back(make_stmt(Let{var, kept_value(var, p)}, (*s)->span));
          continue;
        }
        values.push_back(*s);
        walk(let->value, [&](const Expr& e) {
          if (const auto* n = as<VarRef>(e)) needed.insert(n->var.get());
        });
      }
    }
    std::reverse(values.begin(), values.end());
    return values;
  }

  // Memory ------------------------------------------------------------------------------------------------------------

  // Registers that tile operators spread over the threads and that threads also store to by element are neither one
  // tile nor an array of each thread.
  bool may_be_kept(const BufferData& buffer) const {
    const BufferData& memory = *memory_of(buffer);
    if (memory.scope == Scope::global) return true;  // a view of what stays anyway
    if (memory.scope == Scope::local || memory.scope == Scope::shared) return !memory.address;
    if (memory.scope != Scope::fragment || memory.reducer) return false;
    return kernel_.thread_vars.empty() || !is_stored_by_threads(kernel_.body, memory);
  }

  static bool is_stored_by_threads(const Stmt& s, const BufferData& memory) {
    if (is_collective(s)) return false;
    const auto* store = as<Store>(s);
    if (store && memory_of(*store->buffer) == &memory) return true;
    const std::vector<Stmt> inner = bodies(s);
    return std::any_of(inner.begin(), inner.end(),
                       [&](const Stmt& child) { return is_stored_by_threads(child, memory); });
  }

  // Memory with an element, or as many as `shape` says, for each block, or each thread of each block.
  Buffer workspace(const void* what, std::string name, DType type, bool each_thread, const std::vector<Expr>& shape) {
    Buffer& kept = kept_[what];
    if (kept) return kept;
    BufferData data;
    data.name = std::move(name);
    data.type = type;
    data.span = barrier_;
    data.shape = kernel_.grid;
    if (each_thread)
      for (const int64_t threads : kernel_.threads) data.shape.push_back(int_imm(threads));
    data.shape.insert(data.shape.end(), shape.begin(), shape.end());
    kept = std::make_shared<BufferData>(std::move(data));
    workspaces_.push_back(kept);
    return kept;
  }

  // The own place in a workspace, then `rest`.
  std::vector<Expr> place_of(const BufferData& workspace, const std::vector<Expr>& rest) const {
    std::vector<Expr> place;
    for (const Var& var : kernel_.block_vars) place.push_back(var_ref(var));
    if (place.size() + rest.size() < workspace.shape.size())
      for (const Var& var : kernel_.thread_vars) place.push_back(var_ref(var));
    place.insert(place.end(), rest.begin(), rest.end());
    return place;
  }

  Expr kept_value(const Var& var, size_t part) {
    const Buffer memory = workspace(var.get(), var->name, var->type, !kernel_.thread_vars.empty(), {});
    auto& values = kept_values_[part];
    const bool known = std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.first == var; });
    if (!known) values.emplace_back(var, memory);
    return load(memory, place_of(*memory, {}), barrier_);
  }

  // Copies a buffer to its workspace, or from it.
  Stmt move(const Buffer& buffer, bool away) {
    const bool own = buffer->scope == Scope::local;
    const Buffer memory =
        workspace(buffer.get(), buffer->name, buffer->type, own && !kernel_.thread_vars.empty(), buffer->shape);
    std::vector<Expr> indices;
    std::vector<int64_t> extents;
    for (const Expr& extent : buffer->shape) extents.push_back(*constant_int(extent));
    if (!own) {
      const std::vector<Expr> zeros(extents.size(), int_imm(0));
      std::vector<int64_t> box(memory->shape.size() - extents.size(), 1);
      box.insert(box.end(), extents.begin(), extents.end());
      const Region here{buffer, zeros, extents, barrier_}, there{memory, place_of(*memory, zeros), box, barrier_};
      return make_stmt(away ? Copy{here, there, {}} : Copy{there, here, {}}, barrier_);
    }
    std::vector<Var> vars;
    for (size_t axis = 0; axis < extents.size(); ++axis) vars.push_back(make_var("i", kInt32));
    for (const Var& var : vars) indices.push_back(var_ref(var));
    const std::vector<Expr> place = place_of(*memory, indices);
    Stmt body = away ? make_stmt(Store{memory, place, load(buffer, indices, barrier_)}, barrier_)
                     : make_stmt(Store{buffer, indices, load(memory, place, barrier_)}, barrier_);
    for (size_t axis = extents.size(); axis-- > 0;)
      body = make_stmt(
          For{LoopKind::serial, {vars[axis]}, {int_imm(extents[axis])}, 0, make_stmt(Block{{body}}, barrier_)},
          barrier_);
    return body;
  }
};

}  // namespace

Result<Program> grid_sync(const Program& program) {
  Program result = program;
  result.kernels.clear();
  for (const Kernel& kernel : program.kernels) {
    if (!grid_barrier(kernel.body)) {
      result.kernels.push_back(kernel);
      continue;
    }
    for (Kernel& part : TRY(Splitting(kernel, result.workspaces).run())) result.kernels.push_back(std::move(part));
  }
  return result;
}

}  // namespace tilepilot::passes
