// Vectors that a thread reads from an array of its own at a place that is known at run time alone, `held[j % 4, k]` of
// all k. Such an array would lie in memory; where all else names places that are known, and it has few vectors, the one
// is picked from registers.
#pragma once

#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::gpu {

// What `lanes` neighbours along `lane` read there, picked by statements in `out`; null if the array is not of this
// kind.
ir::Buffer picked_vector(Lowering& lowering, const ir::Load& load, const ir::Var& lane, int64_t lanes, Span span,
                         Lowering::Stmts& out);

}  // namespace tilepilot::targets::gpu
