// SIMT kernels in terms of the block: the statements between two barriers become a parallel loop over
// the threads, and what a thread keeps for itself from one such loop to the next gets an element for each thread. This
// is the loop fission of Stratton, Stone and Hwu, "MCUDA: An Efficient Implementation of CUDA Kernels for Multi-core
// CPUs" (LCPC 2008). Threads that wait for each other in different places become concurrent roles.
#pragma once

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// The same program without thread variables and roles; barriers are left between concurrent roles alone.
// `unsupported_tile_feature` where a barrier or tile operator stands that not all threads of the block reach.
Result<ir::Program> thread_regions(const ir::Program& program);

}  // namespace tilepilot::passes
