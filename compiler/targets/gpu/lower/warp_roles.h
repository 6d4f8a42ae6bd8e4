// Kernels whose threads go different ways to where they meet: warp-specialised ones, and those that guard a barrier or
// a tile operator by the thread index. Each such team of threads is planned and lowered by itself, as if it were the
// block; the teams then stand side by side in one kernel. Tiles that a program names are the same memory for all teams.
#pragma once

#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::gpu {

// Any prepared kernel (see pipeline.h). Errors: `unsupported_tile_feature`.
Result<LoweredKernel> lower_teams(const ir::Kernel& kernel, Architecture architecture, const TargetLowering& target);
// Each team's kernel; the kernel itself where all threads go one way.
Result<std::vector<PlannedKernel>> plan_teams(const ir::Kernel& kernel, Architecture architecture,
                                              const TargetLowering& target);

}  // namespace tilepilot::targets::gpu
