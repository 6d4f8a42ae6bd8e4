// Several blocks of a launch as one, where threads sum up what all these blocks read: each block by itself would stream
// the shared operand through the caches again.
#pragma once

#include <optional>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

struct JoinedBlocks {
  size_t axis;        // of the grid, along which blocks are joined
  int64_t count;      // how many
  ir::Kernel kernel;  // does what blocks b to b + count - 1 do, where b is its block variable
};

// Nullopt unless the kernel is one loop over its threads with buffers of their own alone, and along an axis of the grid
// some operand that lanes read side by side stays the same. `kernel` is in the form that code is generated from.
std::optional<JoinedBlocks> join_blocks(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::cpu
