// Proxy fences (sm_90a): wgmma and TMA access shared memory through the async proxy. They see what threads wrote only
// if those threads execute a fence before the next barrier.
#pragma once

#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/shared/barriers.h"

namespace tilepilot::targets::gpu {

// Whether anything but threads reads or writes shared memory.
bool uses_async_proxy(const ir::Kernel& kernel, const Inference& inference);

// @pre barriers are placed
// @post a fence stands between a write to shared memory by threads and the next barrier, or arrival at one, also before
// statements with scratch memory, which have barriers of their own
ir::Kernel place_fences(const ir::Kernel& kernel, const ScratchBuffers& scratch_buffers);

}  // namespace tilepilot::targets::gpu
