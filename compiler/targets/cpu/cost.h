// About how many operations statements take; what is computed of indices is free.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

int64_t cost(const std::vector<ir::Stmt>& statements);

}  // namespace tilepilot::targets::cpu
