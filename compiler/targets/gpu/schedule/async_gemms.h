// Asynchronous GEMMs within an iteration: where a loop's body has GEMMs by wgmma among other work, each is started as
// early as its operands allow, and waited for where something first uses its sums or overwrites what it reads. Sums and
// operands keep their values, bit for bit.
//
//   gemm S; work on S; gemm P; work on S and P   becomes   start S; start P; wait for S; work on S; wait for P; ...
//
// Across iterations GEMMs overlap by gemm_overlap.h; loops that it has rewritten, like all that wait for GEMMs
// themselves, stay as they are.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

// @pre loops are pipelined already (software_pipeline.h)
ir::Kernel with_async_gemms(const ir::Kernel& kernel, const Machine& machine, std::vector<Decision>& decisions);

}  // namespace tilepilot::targets::gpu
