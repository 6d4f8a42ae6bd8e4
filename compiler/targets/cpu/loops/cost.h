// About how many operations statements take; what is computed of indices is free.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

int64_t cost(const std::vector<ir::Stmt>& statements);
// At most so many, with all of the loops' iterations; INT64_MAX if that depends on numbers that are not constant, or on
// other threads.
int64_t most_operations(const ir::Stmt& stmt);

}  // namespace tilepilot::targets::cpu
