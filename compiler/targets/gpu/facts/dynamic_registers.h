// Parallel loops that hand a part of a fragment over to memory, a part that moves as the kernel runs:
// `tile[i, j] = held[i + s * 16, j]`. No thread can know while the code is written which register it needs; but each
// thread knows which elements it holds, and where they go.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// @pre `stmt` is a parallel loop
// @post the same stores, by a loop over all elements of the fragment with a condition; `stmt` if it is none of those
ir::Stmt over_held_elements(const ir::Stmt& stmt);

}  // namespace tilepilot::targets::gpu
