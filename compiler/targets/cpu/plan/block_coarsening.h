// Block coarsening: several blocks of a launch become one, so that they share what all of them read.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

struct CoarsenedBlocks {
  std::vector<int64_t> counts;   // along each axis of the grid
  std::vector<ir::Var> members;  // of the loops over threads: which of these blocks; null where the count is 1
  ir::Kernel kernel;             // does what blocks b to b + count - 1 do, where b is a block variable
};

// Nullopt unless the kernel is made of loops over its threads, and blocks along these axes take all that is around
// them the same way. A buffer whose contents do not depend on the block along an axis is there once for all.
std::optional<CoarsenedBlocks> coarsen_blocks(const ir::Kernel& kernel, const std::vector<int64_t>& counts);

// By how many blocks to coarsen where lanes sum up (see lanes.h) what all these blocks read: each block by itself
// would stream the shared operand through the caches again. All 1 if there is no such operand.
std::vector<int64_t> blocks_sharing_operands(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::cpu
