// Tile scheduler: which blocks of the program's grid a block of the launch processes. Either one, scheduled by the
// hardware, or one after the other (persistent blocks). Where the work of blocks differs, the hardware's way is better:
// attention of causal masks, forward and backward, was 3 to 60 % faster on an H100 than with blocks dealt out
// beforehand.
#pragma once

#include "compiler/targets/gpu/schedule/rasterisation.h"

namespace tilepilot::targets::gpu {

struct TileSchedule {
  bool persistent = true;   // all blocks of the program have the same work
  bool last_first = false;  // of others: those with the highest numbers have most work, and run first
  Rasterisation order;
};

// The blocks of the program's grid.
ir::Expr block_count(const ir::Kernel& kernel);

// What `body` says for one block of the kernel, done by the block whose number is `block` of a grid of its own for each
// that it stands for. Blocks of a cluster take those of one cluster. @pre clusters of the kernel are whole
std::vector<ir::Stmt> scheduled_tiles(const ir::Kernel& kernel, const TileSchedule& schedule, const ir::Var& block,
                                      std::vector<ir::Stmt> body);

}  // namespace tilepilot::targets::gpu
