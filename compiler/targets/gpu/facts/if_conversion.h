// If-conversion in the iterations of parallel loops: where both sides of a condition store to the same elements, one
// store of what the condition chooses does that, and neighbours can be stored at once.
//
//   if x[i] > 0 { y[i] = x[i] } else { y[i] = x[i] * 0.1 }      ->      y[i] = x[i] > 0 ? x[i] : x[i] * 0.1
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// Sides that do more than compute and store stay. Values are the same, and what is not chosen is not loaded.
ir::Kernel with_if_conversion(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
