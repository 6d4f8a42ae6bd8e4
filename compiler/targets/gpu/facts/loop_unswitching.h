// Loop unswitching of loops that choose each element's value by a comparison, as masks of attention do: where the
// comparison holds for all elements of the tile at once, which one comparison tells, nothing is compared element by
// element.
//
//   parallel i, j: s[i, j] = m + i >= n + j ? 0 : -inf      if m >= n + 127 { parallel i, j: s[i, j] = 0 }
//                                                      ->   else { as before }
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// Loops over fragments outside loops of threads. Values are the same.
ir::Kernel unswitch_loops(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
