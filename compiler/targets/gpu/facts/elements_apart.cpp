#include "compiler/targets/gpu/facts/elements_apart.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"

namespace tilepilot::targets::gpu {
namespace {

using ir::Affine;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// Where an axis of a buffer is accessed in iteration `h`: step * h, plus what is the same for all iterations and
// threads of a block, plus a number from a range.
struct Reach {
  int64_t step = 0;
  Affine outside;
  ir::Bounds inside{0, 0};
};

class Finder {
 public:
  Finder(const ir::Kernel& kernel, const ir::For& loop, const c::IntegerFacts& facts)
      : var_(loop.vars[0]), facts_(facts), varying_(ir::bound_in(kernel.body)) {
    for (const ir::Var& thread : kernel.thread_vars) varying_.insert(thread.get());
    ir::walk(
        loop.body, [&](const Stmt& part) { see(part); },
        [&](const Expr& part) {
          if (const auto* load = ir::as<ir::Load>(part)) see(load->buffer, load->indices, {});
        });
  }

  std::unordered_set<const ir::BufferData*> apart() const {
    std::unordered_set<const ir::BufferData*> result;
    for (const auto& [memory, axes] : reaches_) {
      const bool any = std::any_of(axes.begin(), axes.end(), [](const std::optional<Reach>& reach) {
        if (!reach) return false;
        const ir::Wide step = reach->step, others = ir::Wide{reach->inside.hi} - reach->inside.lo;
        return others < (step < 0 ? -step : step);
      });
      if (any) result.insert(memory);
    }
    return result;
  }

 private:
  const ir::Var& var_;
  const c::IntegerFacts& facts_;
  ir::Variables varying_;
  std::unordered_map<const ir::BufferData*, std::vector<std::optional<Reach>>> reaches_;  // by axis; null: any place

  void see(const Stmt& stmt) {
    if (const auto* store = ir::as<ir::Store>(stmt)) return see(store->buffer, store->indices, {});
    if (const auto* copy = ir::as<ir::Copy>(stmt); copy && !copy->peer) {
      for (const ir::Region* region : {&copy->source, &copy->destination})
        see(region->buffer, region->start, region->extent);
      return;
    }
    ir::each_own_effect(stmt, [&](const Buffer& buffer, bool) { reaches_[ir::memory_of(buffer)].clear(); });
  }

  void see(const Buffer& buffer, const std::vector<Expr>& start, const std::vector<int64_t>& extent) {
    const ir::BufferData* memory = ir::memory_of(buffer);
    const auto [found, is_first] = reaches_.try_emplace(memory);
    auto& axes = found->second;
    if (buffer.get() != memory) return axes.clear();  // seen in another shape
    for (size_t axis = 0; axis < start.size(); ++axis) {
      auto reach = reach_of(start[axis], extent.empty() ? 1 : extent[axis]);
      if (is_first)
        axes.push_back(std::move(reach));
      else if (axis < axes.size())
        axes[axis] = both(axes[axis], reach);
    }
  }

  std::optional<Reach> reach_of(const Expr& index, int64_t extent) const {
    const auto form = facts_.is_exact(index) ? facts_.affine(index) : std::nullopt;
    if (!form) return std::nullopt;
    Reach reach;
    Affine inside{{}, form->constant};
    for (const Affine::Term& term : form->terms) {
      if (term.var == var_)
        reach.step = term.coefficient;
      else
        (varying_.contains(term.var.get()) ? inside : reach.outside).terms.push_back(term);
    }
    reach.inside = facts_.range(inside);
    if (reach.inside.hi > INT64_MAX - extent) return std::nullopt;
    reach.inside.hi += extent - 1;
    return reach;
  }

  static std::optional<Reach> both(const std::optional<Reach>& a, const std::optional<Reach>& b) {
    if (!a || !b || a->step != b->step) return std::nullopt;
    const auto difference = ir::difference(a->outside, b->outside);
    if (!difference || !difference->is_constant() || difference->constant != 0) return std::nullopt;
    Reach reach = *a;
    reach.inside = {std::min(a->inside.lo, b->inside.lo), std::max(a->inside.hi, b->inside.hi)};
    return reach;
  }
};

}  // namespace

std::unordered_set<const ir::BufferData*> memory_apart(const ir::Kernel& kernel, const ir::For& loop,
                                                       const c::IntegerFacts& facts) {
  if (loop.vars.size() != 1) return {};
  return Finder(kernel, loop, facts).apart();
}

}  // namespace tilepilot::targets::gpu
