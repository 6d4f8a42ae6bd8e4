// Races between blocks that are certain: each reads an element of a tensor and stores it later, `y[j] = y[j] + x[bx,
// j]`, and what others do in between is lost, on every target.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

struct BlockRace {
  ir::Stmt store;  // of an element, or a copy
  ir::Buffer buffer;
  ir::Var block;  // blocks that differ in this index change the same element
};

// Races of two blocks that are found by trying: both read the same element and then store it, as constants in the place
// of their indices, loops' variables and symbolic extents show. None where what a tensor holds decides about it, or
// blocks wait for each other otherwise than by a barrier of the grid.
std::vector<BlockRace> block_races(const ir::Program& program, const ir::Kernel& kernel);

}  // namespace tilepilot::passes
