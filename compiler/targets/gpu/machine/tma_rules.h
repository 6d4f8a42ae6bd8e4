// The copy engine of sm_90a (TMA): which copies it can make, and what it has to know about their tensors.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/layout/swizzle.h"

namespace tilepilot::targets::gpu {

// A tensor as the copy engine sees it: boxes of it, which it swizzles.
struct TensorBoxes {
  ir::Buffer tensor;
  std::vector<int64_t> box;  // extents, outermost axis first
  layout::SwizzleSpan span = layout::SwizzleSpan::none;
  ir::Var map;  // names the kernel parameter that describes it
};

// Why the copy engine cannot copy this whole tile from its tensor, or to it; "" if it can. The tile has no ring yet.
std::string not_by_engine(const ir::Copy& copy);

// Whether the compiler knows enough of where rows of a tensor lie; else threads load elements one by one.
bool has_known_rows(const ir::BufferData& tensor);

// The same of a part of a tile, wherever the tile's other uses put its elements. `viewed`: tiles that are seen as other
// types or shapes.
std::string not_part_by_engine(const ir::Copy& copy, const std::unordered_set<const ir::BufferData*>& viewed);

// Why the bytes of this copy are not consecutive on both sides, where the tile is not swizzled; "" if they are.
std::string not_in_line(const ir::Copy& copy);

// Why the copy engine does not copy this from one tile to that of another block of the cluster; "" if it does where
// both lie in memory as they are numbered, or alike.
std::string not_to_block(const ir::Copy& copy);

// Whether a tile has one row, which is never swizzled.
bool is_one_row(const ir::BufferData& tile);

// Whether the engine copies this part of a tile only if the tile lies in panels.
bool needs_panels(const ir::Region& part);

// The bytes of a box of this copy's extents.
int64_t bytes_of_copy(const ir::Copy& copy);

}  // namespace tilepilot::targets::gpu
