// All-reduces over threads as statements on tiles of the block: every thread writes its value to a tile, the tile is
// reduced along the threads that are combined, every thread reads its group's result.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

ir::Kernel all_reduces_through_tiles(const ir::Kernel& kernel);

}  // namespace tilepilot::passes
