// Load balancing of blocks whose work differs, as that of causal attention does: which axes tell how much there is, so
// that blocks with much of it can come first (rasterisation.h) and those with little fill what is left at the end
// (longest processing time first).
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

// Axes of the grid that the numbers of iterations of pipelined loops depend on; none if these are read from memory.
std::vector<size_t> axes_of_work(const ir::Kernel& kernel);

// Whether blocks further along these axes have less work, as in attention's backward pass with a causal mask, as far as
// the first and the last ones tell.
bool work_shrinks(const ir::Kernel& kernel, const std::vector<size_t>& axes);

// How many blocks that differ in other axes than these, heads of attention for instance, may take turns before the next
// ones come: so many that what their pipelined loops read and write stays in L2, each of whose two partitions may have
// a copy, for the blocks that differ in these axes alone. As even parts of all of them.
int64_t band_of_equal_work(const ir::Kernel& kernel, const std::vector<size_t>& axes, const Machine& machine);

}  // namespace tilepilot::targets::gpu
