// Warnings about a kernel that was just traced: what its program asks for and cannot get anything from.
#pragma once

#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

// Threads that never have work (`threads_given`: the program chose their number), and stages that overlap nothing.
void advise(TileContext& context, const ir::Kernel& kernel, bool threads_given);

}  // namespace tilepilot::stage
