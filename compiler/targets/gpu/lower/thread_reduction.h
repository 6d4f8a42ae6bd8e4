// What threads hold, combined over some of them, so that each of these knows the result: lanes of a warp by shuffles,
// warps through shared memory.
#pragma once

#include "compiler/targets/gpu/layout/reduction_modes.h"
#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::gpu {

struct ThreadReduction {
  ir::Buffer values;  // of the thread, a result for each; local
  std::function<ir::Expr(const ir::Expr& a, const ir::Expr& b)> combined;
  ir::Expr identity;  // null: none is known, or it may change a sign or a NaN
  std::vector<ThreadMode> along;
};

// `scratch`: shared memory of values.shape[0] times `scratch_size`, null where none is needed; no thread uses it before
// all have come here. Afterwards threads may still read from it. All threads of the block come here together. Results
// are combined in the same order for all threads.
void combine_threads(Lowering& lowering, ThreadReduction reduction, const ir::Buffer& scratch, Span span,
                     Lowering::Stmts& out);

}  // namespace tilepilot::targets::gpu
