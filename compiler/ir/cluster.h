// Clusters: blocks that run at the same time and reach each other's shared memory.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

// Blocks of a cluster; 1: each runs alone.
int64_t cluster_size(const Kernel& kernel);
// The number of a block in its cluster, along the first axis of the grid first.
Expr rank_in_cluster(const Kernel& kernel, Span span);
// Whether the statement itself writes to other blocks' shared memory, or arrives at their barriers.
bool reaches_peers(const Stmt& stmt);
// Whether it or one below it does.
bool shares_in_cluster(const Stmt& body);

}  // namespace tilepilot::ir
