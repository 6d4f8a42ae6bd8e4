// The order of a grid's blocks. Blocks of products that run at the same time share more rows of A and columns of B, so
// more of the L2 cache, when they are a square of the grid rather than a few rows: bands of rows, each walked along
// columns.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cuda {

// Values for the kernel's two block variables, in the block that is the one with this number. Past the grid's end they
// stay within the grid.
// @post each block of the grid has one number below the grid's volume
std::vector<ir::Stmt> name_in_bands(const ir::Kernel& kernel, const ir::Expr& number);

// The same kernel, its blocks in bands; itself if its grid is small or not of two axes, if blocks
// are in clusters, or a block may wait for another.
ir::Kernel in_bands(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::cuda
