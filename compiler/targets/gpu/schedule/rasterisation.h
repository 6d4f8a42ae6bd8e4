// Rasterisation (threadblock swizzle): which block of the grid has which number. Blocks with neighbouring numbers run
// at the same time, so that the L2 cache serves what they read together. Where the work of blocks differs, those with
// the most work get the first numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/facts/decisions.h"

namespace tilepilot::targets::gpu {

// Numbers go first through the blocks that differ in other axes than `last`, of which at most `most` are a band, then
// along `last`, then on to the next band. Within all of these the first axis of the grid is the fastest.
struct Rasterisation {
  std::vector<size_t> last;
  int64_t most = INT64_MAX;
};
// Of GEMMs on a grid of two axes: bands of rows, each walked along columns. Blocks that run at the same time share
// more rows of A and columns of B when they are a square of the grid rather than a few rows.
Rasterisation gemm_rasterisation();
// The order that a program asks for.
Rasterisation rasterisation_by_panels(const ir::BlockOrder& order);
// Of blocks whose work differs along these axes: `most` blocks that differ in other axes follow each other
// (load_balance.h).
Rasterisation rasterisation_by_work(std::vector<size_t> axes, int64_t most);

// Values for the kernel's block variables, in the block that is the one with this number.
// @post as `number` goes from 0 to the number of blocks, each block is named once
std::vector<ir::Stmt> name_blocks(const ir::Kernel& kernel, const Rasterisation& order, const ir::Expr& number);

// The same where `number` is that of a cluster and `rank` that of a block in it, first axis first.
// @pre extents of the grid are constant, and multiples of the cluster's
std::vector<ir::Stmt> name_blocks_of_cluster(const ir::Kernel& kernel, const Rasterisation& order,
                                             const ir::Expr& number, const ir::Expr& rank);

// What was decided about the order that a program asks for (`T.use_swizzle`).
Decision decision_of_panels(const ir::BlockOrder& order, const std::string& obstacle);

// The kernel with its blocks in the order that it asks for; a GEMM by wgmma on a large grid of two axes in bands of
// rows. Itself if blocks are in clusters, or one may wait for another.
ir::Kernel rasterised(const ir::Kernel& kernel, bool uses_wgmma, std::vector<Decision>& decisions);

}  // namespace tilepilot::targets::gpu
