// Blocks of the grid whose work differs, as that of causal attention does: which axes tell how much there is, and an
// order in which blocks with much of it come first, so that those with little fill what is left at the end (longest
// processing time first). Blocks that differ in other axes follow each other, at most so many that what they read
// together may stay in the cache for the next ones.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cuda {

// Axes of the grid that the numbers of iterations of pipelined loops depend on; none if these are read from memory.
std::vector<size_t> axes_of_work(const ir::Kernel& kernel);

// Lets for the kernel's block variables in the block `number` of the grid, where those with more work, which is taken
// to grow along `axes`, come last.
// @post as `number` goes from 0 to the number of blocks, each block is named once
std::vector<ir::Stmt> name_by_work(const ir::Kernel& kernel, const std::vector<size_t>& axes, const ir::Expr& number);

}  // namespace tilepilot::targets::cuda
