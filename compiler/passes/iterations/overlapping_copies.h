// Copies within one buffer.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// Where the boxes of a copy within one buffer may overlap, a tile of its own stands between them: elements are read
// before any is written.
ir::Program overlapping_copies(const ir::Program& program);

}  // namespace tilepilot::passes
