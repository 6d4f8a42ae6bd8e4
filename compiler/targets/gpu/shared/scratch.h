// Shared memory through which threads exchange values, beside the tiles of the program.
#pragma once

#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

// Adds boards for the kernel's reductions to its allocations and to the inference.
void give_boards(ir::Kernel& kernel, Inference& inference);
// Adds boards for the kernel's split products by warp groups to its allocations and to the inference: [n, k], or
// [2 n, k] where both parts of B go there.
void give_boards_for_parts(ir::Kernel& kernel, Inference& inference);

}  // namespace tilepilot::targets::gpu
