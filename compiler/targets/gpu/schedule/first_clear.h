// Sums that the first iteration of a pipelined loop clears (`T.gemm(..., clear_accum=(k == 0))`) are cleared before the
// loop, so that all iterations do the same.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

ir::Kernel with_clears_first(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
