// Barriers of all blocks: a kernel ends there, and another one with the same blocks begins.
#pragma once

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// The program without `sync` over the grid. Between such barriers blocks keep nothing but global memory: variables and
// buffers of one part stay in it, values made of indices are computed again. `unsupported_tile_feature` where something
// else is used on both sides, or where a barrier stands in a loop or branch.
Result<ir::Program> grid_sync(const ir::Program& program);

}  // namespace tilepilot::passes
