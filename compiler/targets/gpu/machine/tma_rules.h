// Which copies TMA can make (sm_90a), and the descriptors of the tensors that it copies.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/layout/swizzle.h"

namespace tilepilot::targets::gpu {

// A TMA descriptor: boxes of a tensor, which TMA swizzles.
struct TensorBoxes {
  ir::Buffer tensor;
  std::vector<int64_t> box;  // extents, outermost axis first
  layout::SwizzleSpan span = layout::SwizzleSpan::none;
  ir::Var map;  // names the kernel parameter that describes it
};

// Why TMA cannot copy this whole tile from its tensor, or to it; "" if it can. The tile has no ring yet.
std::string tma_obstacle(const ir::Copy& copy);

// Whether the compiler knows enough of where rows of a tensor lie; else threads load elements one by one.
bool has_known_rows(const ir::BufferData& tensor);

// The same of a part of a tile, wherever the tile's other uses put its elements. `viewed`: tiles that are seen as other
// types or shapes.
std::string tma_part_obstacle(const ir::Copy& copy, const std::unordered_set<const ir::BufferData*>& viewed);

// Why the bytes of this copy are not consecutive on both sides, where the tile is not swizzled; "" if they are.
std::string bulk_copy_obstacle(const ir::Copy& copy);

// Why TMA cannot copy this from one tile to that of another block of the cluster; "" if it can where
// both lie in memory as they are numbered, or alike.
std::string cluster_copy_obstacle(const ir::Copy& copy);

// Whether a tile has one row, which is never swizzled.
bool is_one_row(const ir::BufferData& tile);

// Whether TMA copies this part of a tile only if the tile lies in panels.
bool needs_panels(const ir::Region& part);

// The bytes of a box of this copy's extents.
int64_t bytes_of_copy(const ir::Copy& copy);

}  // namespace tilepilot::targets::gpu
