// Parallel loops whose iterations update the same element, `sum[i, j // 4] += x[i, j]`. Done by several threads, a
// load, an addition and a store lose what others add in between.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/passes/iterations/iteration_conflicts.h"

namespace tilepilot::targets::gpu {

// @pre `stmt` is a parallel loop
// @post updates (`+=`, `-=`, minimum, maximum, `|=`) that different iterations may do to one element are atomic ones,
// where that is all that the loop does to the buffer; those of local buffers, of which each thread has its own, stay
ir::Stmt with_atomic_updates(const ir::Stmt& stmt);

// @pre `stmt` is a parallel loop
// @post no two iterations of a parallel loop may update the same element otherwise than by atomic operations: serial
// loops go over the variables that do not tell updated elements apart. `stmt` if it was so before
ir::Stmt in_turn(const ir::Stmt& stmt);
// Those for whose sake that is so.
std::vector<passes::Update> updates_in_turn(const ir::Stmt& stmt);

// Fragments of which different iterations of this parallel loop may update one element by atomic operations. Threads
// hold copies of such an element, each of which would get a part of the updates.
std::vector<ir::Buffer> jointly_updated_fragments(const ir::For& loop);

}  // namespace tilepilot::targets::gpu
