// wgmma (sm_90a) as functions of generated code. There are thousands of shapes and types, so the prelude has none of
// them: a unit gets the text of those that it calls.
#pragma once

#include <string>

#include "compiler/targets/gpu/machine/wgmma_shape.h"

namespace tilepilot::targets::cuda {

// "wgmma_m64n128k16_f32_f16_f16", with "_ra" for a in registers, "_ta" and "_tb" for transposed operands.
std::string wgmma_name(const gpu::Wgmma& shape);
// void NAME(sum* c, a, uint64_t b, bool accumulate), where a in registers is `const type* a`, else `uint64_t a`;
// places in shared memory are of matrix_place. @pre is_wgmma(shape)
std::string wgmma_function(const gpu::Wgmma& shape);

}  // namespace tilepilot::targets::cuda
