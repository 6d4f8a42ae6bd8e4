// Warp roles: kernels whose threads take different paths to barriers, because they are warp-specialised or because they
// guard a barrier or a tile operator by the thread index. The threads of each role are planned and lowered by
// themselves, as if they were the block; the roles then stand side by side in one kernel. Tiles that a program names
// are the same memory for all roles.
#pragma once

#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::gpu {

// Any prepared kernel (see pipeline.h). Errors: `unsupported_tile_feature`.
Result<LoweredKernel> lower_roles(const ir::Kernel& kernel, const Machine& machine, const TargetLowering& target);
// Each role's kernel; the kernel itself where all threads take one path.
Result<std::vector<PlannedKernel>> plan_roles(const ir::Kernel& kernel, const Machine& machine,
                                              const TargetLowering& target);

}  // namespace tilepilot::targets::gpu
