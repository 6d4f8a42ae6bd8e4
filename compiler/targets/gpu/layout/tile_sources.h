// Where reductions and scans take their elements from.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// In pipelined loops, whose tiles may become slots of rings: reductions read fragments, to which tiles are copied
// first. Scans from there, and all into fragments, become a copy and a scan in place.
ir::Kernel with_copied_sources(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
