// Dead-code elimination of lets: the producer warpgroup computes only the values that its copies need.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// The list without lets whose variables no statement after them names, in loops and branches, too; While loops, roles
// and blocks within it are kept as they are.
std::vector<ir::Stmt> without_dead_lets(const std::vector<ir::Stmt>& list);

// The same, and without stores to local buffers that nothing else in the list needs.
std::vector<ir::Stmt> without_dead_values(const std::vector<ir::Stmt>& list);

}  // namespace tilepilot::targets::gpu
