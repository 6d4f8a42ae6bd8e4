#include "compiler/targets/gpu/facts/register_map.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "compiler/passes/algebra/static_index.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Var;
using layout::Fragment;

std::optional<std::vector<int64_t>> register_map(const Fragment& loop, const std::vector<Var>& vars,
                                                 const std::vector<Expr>& indices, const Fragment& held) {
  std::vector<passes::StaticIndex> evaluators;
  for (const Expr& index : indices) {
    auto evaluator = passes::StaticIndex::of(index, vars);
    if (!evaluator) return std::nullopt;
    evaluators.push_back(std::move(*evaluator));
  }
  // The element of the tile that register `reg` of the thread needs; -1: no iteration, -2: outside the tile.
  const auto element = [&](int64_t thread, int64_t reg) -> int64_t {
    const auto at = loop.element({thread, reg});
    if (!at) return -1;
    const auto values = layout::coordinates(loop.shape(), *at);
    layout::Coordinates place;
    for (size_t axis = 0; axis < evaluators.size(); ++axis) {
      place.push_back(evaluators[axis](values));
      if (place.back() < 0 || place.back() >= held.shape()[axis]) return -2;
    }
    return layout::row_major_index(held.shape(), place);
  };
  std::vector<int64_t> map(static_cast<size_t>(loop.register_count()), -1);
  if (held.thread_count() < loop.thread_count()) return std::nullopt;
  std::map<int64_t, int64_t> of_thread;  // element -> register of one thread
  int64_t thread_of_map = -1;
  for (int64_t reg = 0; reg < loop.register_count(); ++reg) {
    for (int64_t thread = 0; thread < loop.thread_count(); ++thread) {
      const int64_t wanted = element(thread, reg);
      if (wanted == -1) continue;
      if (wanted == -2) return std::nullopt;
      int64_t& place = map[static_cast<size_t>(reg)];
      if (place < 0) {
        if (thread_of_map != thread) {
          of_thread.clear();
          for (int64_t r = held.register_count(); r-- > 0;)
            if (const auto e = held.element({thread, r})) of_thread[*e] = r;
          thread_of_map = thread;
        }
        const auto found = of_thread.find(wanted);
        if (found == of_thread.end()) return std::nullopt;
        place = found->second;
      } else if (held.element({thread, place}) != wanted) {
        return std::nullopt;
      }
    }
  }
  return map;
}

bool may_have_register_map(const Fragment& loop, const std::vector<Var>& vars, const std::vector<Expr>& indices,
                           const Fragment& held) {
  constexpr int64_t kMostRegisters = 16;
  if (held.thread_count() < loop.thread_count()) return false;
  std::vector<passes::StaticIndex> evaluators;
  for (const Expr& index : indices) {
    auto evaluator = passes::StaticIndex::of(index, vars);
    if (!evaluator) return false;
    evaluators.push_back(std::move(*evaluator));
  }
  const int64_t step = std::max<int64_t>(1, loop.register_count() / kMostRegisters);
  for (const int64_t thread : {int64_t{0}, loop.thread_count() / 3, loop.thread_count() - 1}) {
    std::unordered_set<int64_t> has;
    for (int64_t reg = 0; reg < held.register_count(); ++reg)
      if (const auto element = held.element({thread, reg})) has.insert(*element);
    for (int64_t reg = 0; reg < loop.register_count(); reg += step) {
      const auto at = loop.element({thread, reg});
      if (!at) continue;
      const auto values = layout::coordinates(loop.shape(), *at);
      int64_t element = 0;
      for (size_t axis = 0; axis < evaluators.size(); ++axis)
        element = element * held.shape()[axis] + evaluators[axis](values);
      if (!has.contains(element)) return false;
    }
  }
  return true;
}

}  // namespace tilepilot::targets::gpu
