// What a list of statements needs of its lets: threads that only ask for tiles compute no values but those that say
// which.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// The list without lets whose variables no statement after them names, in loops and branches, too; While loops, roles
// and blocks within it are kept as they are.
std::vector<ir::Stmt> without_unused_lets(const std::vector<ir::Stmt>& list);

}  // namespace tilepilot::targets::gpu
