// What threads give each other, as statements on tiles of the block. For an all-reduce every thread writes its value to
// a tile, the tile is reduced along the threads that are combined, every thread reads its group's result. For a shuffle
// every thread writes its value and reads another one's; the threads of a warp meet between.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// The kernel without all-reduces and shuffles.
ir::Kernel exchange_through_tiles(const ir::Kernel& kernel);

}  // namespace tilepilot::passes
