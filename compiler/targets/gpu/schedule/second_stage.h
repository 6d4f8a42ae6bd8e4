// A pipelined loop of one stage, or of none, waits for its own copies. Where shared memory has room for a second set of
// its tiles, so that no block less runs on a multiprocessor, and fragments leave registers, it gets two stages.
#pragma once

#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

ir::Kernel with_second_stages(const ir::Kernel& kernel, const Machine& machine);

}  // namespace tilepilot::targets::gpu
