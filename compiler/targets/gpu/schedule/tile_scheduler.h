// Tile scheduler: which blocks of the program's grid a block of the launch processes. Either one, scheduled by the
// hardware, or one after the other (persistent blocks), such that all have about as much work.
#pragma once

#include "compiler/targets/gpu/schedule/rasterisation.h"

namespace tilepilot::targets::gpu {

struct TileSchedule {
  bool persistent = true;
  bool even = true;  // all blocks of the program have the same work; else later ones have more, and run first
  Rasterisation order;
};

// The blocks of the program's grid.
ir::Expr block_count(const ir::Kernel& kernel);

// What `body` says for one block of the kernel, done by the block whose number is `block` of a grid of its own for each
// that it stands for. Blocks of a cluster take those of one cluster. @pre clusters of the kernel are whole
std::vector<ir::Stmt> scheduled_tiles(const ir::Kernel& kernel, const TileSchedule& schedule, const ir::Var& block,
                                      std::vector<ir::Stmt> body);

}  // namespace tilepilot::targets::gpu
