// Finds, for a parallel loop, the bounds checks and conditions of its body that hold for every iteration of most
// blocks, and the one condition, outside the loop, under which they do.
#pragma once

#include <string>
#include <vector>

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

struct HoistedChecks {
  std::vector<std::string> conditions;     // all must hold
  std::vector<const void*> always_proven;  // nodes that hold anyway
  std::vector<const void*> proven;         // nodes that hold under the conditions
};

// The variables of the loop must have their ranges set.
HoistedChecks hoist_checks(c::Context& context, const ir::For& loop);

}  // namespace tilepilot::targets::cpu
