// Updates that iterations of a parallel loop do to one element of a fragment, `sum[i // 4] += x[i, j]`: each iteration
// keeps its part, and a reduction combines the parts afterwards.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// The reduction that an atomic update stands for where all threads together update a fragment.
std::optional<ir::ReduceOp> reduction_of(ir::AtomicOp op);

// The loop and the reductions after it, for as many of its updates as name their element by variables of the loop,
// their quotients, and numbers; null: for none. What it allocates joins `allocations`.
// @pre `stmt` is a parallel loop whose conflicting updates are atomic (facts/conflicting_updates.h)
ir::Stmt with_partial_results(const ir::Stmt& stmt, std::vector<ir::Buffer>& allocations);

}  // namespace tilepilot::targets::gpu
