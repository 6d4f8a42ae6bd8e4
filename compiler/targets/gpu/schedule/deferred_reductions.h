// Reductions that a loop continues (`T.reduce_sum(tile, sums, dim=1, clear=False)`): threads combine what comes with
// elements of their own, and the exchange between threads, which takes shuffles, shared memory and barriers, happens
// once, after the loop.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// Where the loop uses the result for nothing else, the tile lies in registers, threads would have to exchange, and
// there are registers for one more tile. Sums are added in another order.
ir::Kernel with_deferred_reductions(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
