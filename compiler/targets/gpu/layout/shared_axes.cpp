#include "compiler/targets/gpu/layout/shared_axes.h"

#include <algorithm>

#include "compiler/layout/reshape.h"

namespace tilepilot::targets::gpu {

using layout::Fragment;
using layout::Shape;

std::vector<std::vector<SharedAxis>> ways_to_share(const Fragment& held, const Shape& extents,
                                                   const std::vector<size_t>& missing, int64_t vector) {
  std::vector<SharedAxis> plain;
  for (const size_t number : missing) plain.push_back({number, 0});
  std::vector<std::vector<SharedAxis>> ways{plain};
  if (held.replicas() == 1) return ways;
  for (size_t first = 0; first < missing.size(); ++first) {
    if (extents[missing[first]] == 1) continue;
    std::vector<SharedAxis> way = plain;
    const auto place = way.begin() + static_cast<ptrdiff_t>(first);
    std::rotate(way.begin(), place, place + 1);
    if (first > 0) ways.push_back(way);
    for (int64_t together = vector; together >= 1; together /= 2) {
      way.front().together = together;
      ways.push_back(way);
    }
  }
  return ways;
}

std::optional<Fragment> with_shared_axes(const Fragment& held, const Shape& extents, std::vector<size_t> axes,
                                         const std::vector<SharedAxis>& way) {
  std::optional<Fragment> fragment = held;
  for (const SharedAxis& shared : way) {
    if (fragment)
      fragment = layout::expanded(*fragment,
                                  {.at = axes.size(), .extent = extents[shared.number], .together = shared.together});
    axes.push_back(shared.number);
  }
  std::vector<size_t> order(axes.size());
  for (size_t axis = 0; axis < axes.size(); ++axis) order[axes[axis]] = axis;
  if (fragment) fragment = layout::permuted(*fragment, order);
  if (!fragment) return std::nullopt;
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (extents[axis] > fragment->cover()[axis]) return std::nullopt;
  return Fragment(extents, fragment->threads(), fragment->registers(), fragment->cover());
}

}  // namespace tilepilot::targets::gpu
