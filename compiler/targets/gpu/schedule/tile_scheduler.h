// Blocks that take the work of the program's blocks: each that of one, handed out by the machine, or of one after the
// other while they stay (persistent blocks), such that all have about as much to do.
#pragma once

#include "compiler/targets/gpu/schedule/rasterisation.h"

namespace tilepilot::targets::gpu {

struct BlockTurns {
  bool persistent = true;
  bool even = true;  // all blocks of the program have the same work; else later ones have more, and come first
  BlockOrder order;
};

// The blocks of the program's grid.
ir::Expr block_count(const ir::Kernel& kernel);

// What `body` says for one block of the kernel, done by the block whose number is `block` of a grid of its own for each
// that it stands for. Blocks of a cluster take those of one cluster. @pre clusters of the kernel are whole
std::vector<ir::Stmt> in_turns(const ir::Kernel& kernel, const BlockTurns& turns, const ir::Var& block,
                               std::vector<ir::Stmt> body);

}  // namespace tilepilot::targets::gpu
