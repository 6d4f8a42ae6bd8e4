// Fences between the threads and what else reads shared memory: products of sm_90a and its copy engine see what
// threads wrote only if those threads fence it before all threads meet.
#pragma once

#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

// Whether anything but threads reads or writes shared memory.
bool uses_async_proxy(const ir::Kernel& kernel, const Inference& inference);

// @pre barriers are placed
// @post between a write to shared memory by threads and the next meeting, or arrival at a barrier, stands a fence
ir::Kernel place_fences(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
