// Joins neighbouring element-wise statements over one box (copies, fills, parallel loops) where a tile between them
// then needs no memory: copy in, compute, copy out becomes one loop from tensor to tensor.
//
// Two statements may be joined if every buffer that one writes and the other touches is accessed by both at the same
// indices, different for each element. Different global buffers are taken to be different memory. A tile goes if all
// its values in the joined loop come from the loop itself, and nobody reads it afterwards. Statements are joined only
// where a tile goes; copies and fills only with their own tile.
//
// Holds before: the program is simplified (no extents of 1). Holds after: it is valid and means the same.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

ir::Program fuse_elementwise(const ir::Program& program);

}  // namespace tilepilot::passes
