// Barriers of all blocks: a kernel ends there, and another one with the same blocks begins.
#pragma once

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// The program without `sync` over the grid. Values made of indices are computed again after a barrier; what else a
// block or a thread uses on both sides is kept in a workspace meanwhile. `unsupported_tile_feature` where a barrier
// stands in a loop or branch, or where registers that tile operators and threads both change are used on both sides.
Result<ir::Program> grid_sync(const ir::Program& program);

}  // namespace tilepilot::passes
