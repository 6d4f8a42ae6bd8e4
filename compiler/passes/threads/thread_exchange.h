// What threads give each other, as statements on tiles of the block. For an all-reduce every thread writes its value to
// a tile, the tile is reduced along the threads that are combined, every thread reads its group's result. For a shuffle
// every thread writes its value and reads another one's; the threads of a warp synchronise between.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// The kernel without all-reduces and shuffles.
ir::Kernel exchange_through_tiles(const ir::Kernel& kernel);

// What a thread gives to an all-reduce, joined with what a reduction of a tile would start from: minima and maxima pass
// over NaN, and a sum of zeros is 0.
ir::Expr joined_with_identity(ir::BinaryOp op, const ir::Expr& value);

}  // namespace tilepilot::passes
