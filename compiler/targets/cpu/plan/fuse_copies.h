// Removes copies that only carry values between a tensor and a loop over the same tile: the loop reads or writes the
// tensor itself. Before: valid IR. After: the same meaning, and fewer passes over tiles; buffers that became unused are
// gone. It stands before the choice of operand layouts.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

ir::Kernel fuse_copies(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::cpu
