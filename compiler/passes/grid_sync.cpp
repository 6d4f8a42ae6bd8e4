#include "compiler/passes/grid_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/element_form.h"
#include "compiler/passes/thread_differences.h"

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
  std::unordered_set<const VarData*> used;
};

class Splitting {
 public:
  explicit Splitting(const Kernel& kernel) : kernel_(kernel) {}

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
    std::vector<Kernel> result;
    for (size_t i = 0; i < parts_.size(); ++i) result.push_back(TRY(kernel_of(i)));
    return result;
  }

 private:
  const Kernel& kernel_;
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

  Error outlives(const std::string& name) const {
    return make_error(DiagnosticKind::unsupported_tile_feature, barrier_,
                      fmt::format("`{}` is used on both sides of a barrier of all blocks", name),
                      "keep it in global memory, or compute it again after the barrier");
  }

  Result<Kernel> kernel_of(size_t index) const {
    const Part& part = parts_[index];
    Kernel result = kernel_;
    result.allocations.clear();
    for (const Buffer& buffer : kernel_.allocations) {
      const auto uses_it = [&](const Part& p) { return p.buffers.count(memory_of(buffer)) > 0; };
      if (!uses_it(part)) continue;
      if (std::count_if(parts_.begin(), parts_.end(), uses_it) > 1) return outlives(buffer->name);
      result.allocations.push_back(buffer);
    }
    std::vector<Stmt> body = TRY(values_for(index));
    body.insert(body.end(), part.body.begin(), part.body.end());
    result.body = make_stmt(Block{std::move(body)}, kernel_.body->span);
    return result;
  }

  // What a part needs of the values that the earlier ones bind. One value may need another that stands before it.
  Result<std::vector<Stmt>> values_for(size_t index) const {
    std::unordered_set<const VarData*> needed = parts_[index].used;
    std::vector<Stmt> values;
    for (size_t p = index; p-- > 0;) {
      const std::vector<Stmt>& earlier = parts_[p].body;
      for (auto s = earlier.rbegin(); s != earlier.rend(); ++s) {
        const Var var = bound_variable(**s);
        if (!var || needed.count(var.get()) == 0) continue;
        const auto* let = as<Let>(*s);
        if (!let || has_load(let->value)) return outlives(var->name);
        values.push_back(*s);
        walk(let->value, [&](const Expr& e) {
          if (const auto* n = as<VarRef>(e)) needed.insert(n->var.get());
        });
      }
    }
    std::reverse(values.begin(), values.end());
    return values;
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
    for (Kernel& part : TRY(Splitting(kernel).run())) result.kernels.push_back(std::move(part));
  }
  return result;
}

}  // namespace tilepilot::passes
