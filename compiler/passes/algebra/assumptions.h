// What programs promise (`T.assume`): facts that targets may build upon, no code.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// Takes promises out of the kernels' bodies. Those that are given whenever their variables are bound, on no condition,
// become the kernel's assumptions, in terms of variables that no definition of integers explains; the others are
// dropped.
ir::Program collect_assumptions(const ir::Program& program);

// Those, and why.
struct DroppedAssumption {
  Span span;
  std::string why;
};
std::vector<DroppedAssumption> dropped_assumptions(const ir::Program& program);

}  // namespace tilepilot::passes
