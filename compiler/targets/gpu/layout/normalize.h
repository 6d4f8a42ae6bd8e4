// Fewer forms of tile operators for the passes behind: copies and fills are parallel loops (asynchronous copies stay),
// scans are loops, C of a gemm, both operands of a reduction and operands of gemms that are neither fragments nor
// shared are fragments, or shared tiles, of their own.
#pragma once

#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

// Valid IR with the same meaning.
ir::Kernel normalize(const ir::Kernel& kernel);

// Each statement in conflict uses a shared tile instead of the fragment, with copies before and after; where it needs a
// fragment (C of a gemm, results of reductions) another fragment. Where shuffles bring it there it uses another
// fragment, too, and the copies are those of one fragment to another.
// @post the result is normalized, but for these copies
ir::Kernel stage_conflicts(const ir::Kernel& kernel, const std::vector<Inference::Conflict>& conflicts);

}  // namespace tilepilot::targets::gpu
