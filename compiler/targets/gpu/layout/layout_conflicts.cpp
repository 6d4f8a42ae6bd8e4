#include "compiler/targets/gpu/layout/layout_conflicts.h"

#include <algorithm>

#include "compiler/ir/visit.h"
#include "compiler/layout/reshape.h"
#include "compiler/targets/gpu/facts/conflicting_updates.h"
#include "compiler/targets/gpu/facts/register_map.h"
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/layout_conversions.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Scope;
using ir::Stmt;
using layout::Fragment;

namespace {

class ConflictFinder {
 public:
  ConflictFinder(int64_t threads, Inference& inference) : threads_(threads), inference_(inference) {}

  void run(const FragmentUsers& users) {
    for (const ParallelLoop& loop : users.loops) check_joint_updates(loop);
    for (const ParallelLoop& loop : users.loops) check_owners(loop);
    for (const ParallelLoop& loop : users.loops) check_replicas(loop);
    for (const TileReduction& reduction : users.reductions) check_reduction(reduction.stmt);
    for (const Stmt& stmt : users.gemms) check_gemm(stmt, *ir::as<ir::Gemm>(stmt));
    for (const Stmt& stmt : users.others) check_element(stmt);
    for (const Stmt& stmt : users.conversions) check_conversion(stmt, *ir::as<ir::Copy>(stmt));
  }

 private:
  const int64_t threads_;
  Inference& inference_;

  const Fragment& held(const Buffer& buffer) const { return inference_.fragments.at(buffer.get()); }
  const Fragment& at(const ParallelLoop& loop) const { return inference_.loops.at(loop.stmt.get()); }

  // `wanted`: a layout of the buffer that the statement would do with.
  void conflict(const Stmt& stmt, const Buffer& buffer, std::string why, const std::optional<Fragment>& wanted = {}) {
    for (const Inference::Conflict& other : inference_.conflicts)
      if (other.stmt == stmt && other.buffer == buffer) return;
    const int64_t shuffles = wanted ? shuffles_between(stmt, buffer, held(buffer), *wanted) : -1;
    inference_.conflicts.push_back({stmt, buffer, std::move(why), shuffles});
  }

  // One thread holds such an element and does all that is done to it, or the element lies where all threads see it.
  void check_joint_updates(const ParallelLoop& loop) {
    for (const Buffer& fragment : jointly_updated_fragments(*ir::as<ir::For>(loop.stmt)))
      if (has_replicas(held(fragment)))
        conflict(loop.stmt, fragment, "threads hold copies of an element that several of them update");
  }

  void check_owners(const ParallelLoop& loop) {
    for (const Use& use : loop.uses)
      if (use.buffer->scope == Scope::fragment && !register_map(at(loop), loop.vars, use.indices, held(use.buffer)))
        conflict(loop.stmt, use.buffer, "other threads hold the elements that a thread needs here",
                 projected(loop, use, at(loop)));
  }

  // Once the loop writes memory alone, one of the threads that do the same does it.
  void check_replicas(const ParallelLoop& loop) {
    if (!has_replicas(at(loop)) || !needs_one_thread(loop.stmt)) return;
    for (const Use& use : loop.uses)
      if (!is_seen_by_others(*use.buffer) && writes_element(loop.stmt, use.buffer))
        conflict(loop.stmt, use.buffer, "one of the threads that do the same does it for all");
  }

  void check_reduction(const Stmt& stmt) {
    const auto wanted = result_fragment(stmt, held(source_of(stmt)));
    if (!wanted)
      conflict(stmt, source_of(stmt), "no thread could hold the result of this reduction");
    else if (!layout::equal_functions(*wanted, held(destination_of(stmt))))
      conflict(stmt, destination_of(stmt), "the result of this reduction is held by other threads", wanted);
  }

  void check_gemm(const Stmt& stmt, const ir::Gemm& gemm) {
    const GemmPlan& plan = inference_.gemms.at(stmt.get());
    const auto check = [&](const ir::Region& region, const std::optional<Fragment>& wanted, bool is_transposed) {
      if (region.buffer->scope != Scope::fragment) return;
      const bool fits = wanted && !is_transposed && is_whole(region);
      const std::optional<Fragment> there =
          fits ? std::optional(with_leading(*wanted, region.extent.size())) : std::nullopt;
      if (!fits || !layout::equal_functions(*there, held(region.buffer)))
        conflict(stmt, region.buffer, "the matrix product needs its operand otherwise", there);
    };
    check(gemm.c, plan.c, false);
    check(gemm.a, plan.a, gemm.transpose_a);
    check(gemm.b, plan.b, gemm.transpose_b);
  }

  // Elements that all threads read, or write, outside parallel loops: each must hold them itself.
  void check_element(const Stmt& stmt) {
    for (const Use& use : uses_of(stmt)) {
      if (use.buffer->scope != Scope::fragment) continue;
      const Fragment every({1}, layout::Layout{{threads_, 0}}, layout::Layout{});
      if (!register_map(every, {}, use.indices, held(use.buffer)))
        conflict(stmt, use.buffer, "not every thread holds the element that is read here");
    }
  }

  void check_conversion(const Stmt& stmt, const ir::Copy& copy) {
    const Buffer &from = copy.source.buffer, &to = copy.destination.buffer;
    if (auto moves = conversion_by_shuffles(from->type, held(from), held(to)))
      inference_.conversions.emplace(stmt.get(), std::move(*moves));
    else
      conflict(stmt, from, "its elements cross warps");
  }
};

}  // namespace

void find_conflicts(const FragmentUsers& users, int64_t threads, Inference& inference) {
  ConflictFinder(threads, inference).run(users);
}

std::optional<Fragment> projected(const ParallelLoop& loop, const Use& use, const Fragment& at) {
  const auto pattern = pattern_of(use, loop.vars);
  if (!pattern) return std::nullopt;
  const layout::Shape shape = shape_of(use.buffer);
  std::optional<Fragment> fragment = at;
  std::vector<size_t> axes(loop.vars.size());
  for (size_t number = 0; number < axes.size(); ++number) axes[number] = number;
  for (size_t number = loop.vars.size(); number-- > 0;) {
    if (std::find(pattern->begin(), pattern->end(), std::optional(number)) != pattern->end()) continue;
    if (fragment) fragment = layout::reduced(*fragment, number);
    axes.erase(axes.begin() + static_cast<ptrdiff_t>(number));
  }
  if (!fragment) return std::nullopt;
  std::vector<size_t> order;
  for (const auto& number : *pattern)
    if (number) order.push_back(static_cast<size_t>(std::find(axes.begin(), axes.end(), *number) - axes.begin()));
  fragment = layout::permuted(*fragment, order);
  for (size_t axis = 0; axis < pattern->size() && fragment; ++axis)
    if (!(*pattern)[axis]) fragment = layout::expanded(*fragment, {.at = axis, .extent = 1});
  return fragment && fragment->shape() == shape ? fragment : std::nullopt;
}

Fragment with_leading(Fragment fragment, size_t rank) {
  while (fragment.shape().size() < rank) fragment = *layout::expanded(fragment, {.at = 0, .extent = 1});
  return fragment;
}

std::optional<Fragment> result_fragment(const Stmt& stmt, const Fragment& source) {
  const auto* reduce = ir::as<ir::Reduce>(stmt);
  if (reduce == nullptr) return source;
  const auto axis = static_cast<size_t>(reduce->axis);
  auto fragment = layout::reduced(source, axis);
  if (fragment && reduce->destination.buffer->rank() == reduce->source.buffer->rank())
    fragment = layout::expanded(*fragment, {.at = axis, .extent = 1});
  return fragment;
}

const Buffer& source_of(const Stmt& reduction) {
  const auto* reduce = ir::as<ir::Reduce>(reduction);
  return reduce ? reduce->source.buffer : ir::as<ir::Scan>(reduction)->source.buffer;
}
const Buffer& destination_of(const Stmt& reduction) {
  const auto* reduce = ir::as<ir::Reduce>(reduction);
  return reduce ? reduce->destination.buffer : ir::as<ir::Scan>(reduction)->destination.buffer;
}

}  // namespace tilepilot::targets::gpu
