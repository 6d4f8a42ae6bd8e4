// Store-to-load forwarding in the iterations of parallel loops: what an iteration loads from where it has just stored
// is what it stored. Then all its loads may come before its stores, those of neighbours at once.
//
//   m[i] = m[i] * 0.9 + g[i]; p[i] = p[i] - m[i]   ->   let a = m[i] * 0.9 + g[i]; m[i] = a; p[i] = p[i] - a
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// Of shared and global memory. Values are the same.
ir::Kernel with_stored_values(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
