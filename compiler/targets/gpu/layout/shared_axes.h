// Loops over more axes than a fragment has that they name, such as those that divide the rows of a matrix by what
// `T.reduce_sum` found: the threads that hold an element of the fragment share the other axes out among themselves.
#pragma once

#include <optional>
#include <vector>

#include "compiler/layout/fragment.h"

namespace tilepilot::targets::gpu {

// An axis of the loop that the fragment lacks.
struct SharedAxis {
  size_t number = 0;
  int64_t together = 0;  // neighbours along it that a thread has; 0: all that it has
};

// Ways to share `missing` axes of a loop, first come those that have replicas share them first; `vector`: elements that
// a thread moves at once, at most. One way if there are no replicas.
std::vector<std::vector<SharedAxis>> ways_to_share(const layout::Fragment& held, const layout::Shape& extents,
                                                   const std::vector<size_t>& missing, int64_t vector);

// The layout of the loop. Axis i of `held` is the loop's axis axes[i].
std::optional<layout::Fragment> with_shared_axes(const layout::Fragment& held, const layout::Shape& extents,
                                                 std::vector<size_t> axes, const std::vector<SharedAxis>& way);

}  // namespace tilepilot::targets::gpu
