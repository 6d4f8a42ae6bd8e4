// Barriers that tile operators and parallel loops imply. A barrier stands before each of them that accesses memory
// which an earlier one has accessed since the last barrier, if one of the two writes. What threads do for themselves in
// kernels with thread variables is ordered already (passes/threads/thread_sync.h).
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// `sync`: the barrier of the kernel's threads, who may be a part of the block. `rings`: tiles that a software pipeline
// orders itself, within its loop. `share`: whether two buffers have memory in common, apart from views.
using SharesMemory = std::function<bool(const ir::BufferData* a, const ir::BufferData* b)>;
// `scratch_buffers`: of reductions and split-precision GEMMs. They write it, pass a barrier, and read it.
using ScratchBuffers = std::unordered_map<const ir::StmtNode*, ir::Buffer>;
ir::Kernel place_barriers(const ir::Kernel& kernel, const std::vector<ir::Buffer>& rings,
                          const ScratchBuffers& scratch_buffers, const SharesMemory& share, const ir::Sync& sync = {});

}  // namespace tilepilot::targets::gpu
