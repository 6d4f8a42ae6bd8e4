// Where sums are cleared. Those that the first iteration of a pipelined loop clears (`T.gemm(..., clear_accum=(k ==
// 0))`) are cleared before the loop, so that all iterations do the same. Those that are cleared before each GEMM
// (`T.clear(C); T.gemm(A, B, C)`) the GEMM clears itself: wgmma then does not add in its first step.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

ir::Kernel with_clears_first(const ir::Kernel& kernel);
ir::Kernel with_clears_in_gemms(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
