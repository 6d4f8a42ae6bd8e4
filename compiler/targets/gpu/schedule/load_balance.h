// Load balancing of blocks whose work differs, as that of causal attention does: which axes tell how much there is, so
// that blocks with much of it can come first (rasterisation.h) and those with little fill what is left at the end
// (longest processing time first).
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// Axes of the grid that the numbers of iterations of pipelined loops depend on; none if these are read from memory.
std::vector<size_t> axes_of_work(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
