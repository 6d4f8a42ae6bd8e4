// How a kernel addresses a tensor: the shape it declares for the parameter, in terms of its own sizes, and the index of
// each element in terms of its loops. A strided window becomes the natural axes of the memory behind it plus offsets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/builtin/tile_plan.h"

namespace tilepilot::agent::builtin {

struct AccessAxis {
  int loop = -1;  // -1: no loop walks this axis; the index is the offset
  int64_t extent = 1;
  int64_t offset = 0;
  std::string size;   // extent in the kernel's text: "N", "2 * N", "7"
  std::string start;  // offset likewise; empty: 0
};

struct TensorAccess {
  std::vector<AccessAxis> axes;
  Shape shape() const;
  std::string shape_text() const;  // "(M, 2 * N)"
};

// `strides` along the plan's loops, `offset` and `total` in elements of contiguous memory. nullopt: the strides do not
// nest, so no declared shape fits.
std::optional<TensorAccess> describe_access(const TilePlan& plan, const Shape& strides, int64_t offset, int64_t total);

}  // namespace tilepilot::agent::builtin
