// Shared-memory scratch: memory through which the threads of a reduction, or of a split-precision GEMM, exchange
// values.
#pragma once

#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

// Adds scratch for the kernel's reductions to its allocations and to the inference.
void allocate_reduction_scratch(ir::Kernel& kernel, Inference& inference);
// Adds scratch for the kernel's split-precision wgmma to its allocations and to the inference: [n, k], or
// [2 n, k] where both parts of B go there.
void allocate_split_gemm_scratch(ir::Kernel& kernel, Inference& inference);

}  // namespace tilepilot::targets::gpu
