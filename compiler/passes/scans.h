// Scans as loops, which code is generated from like any others. Before: valid IR. After: the same meaning, no scans. It
// stands before all that counts how a kernel uses its buffers.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

ir::Kernel expand_scans(const ir::Kernel& kernel);

}  // namespace tilepilot::passes
