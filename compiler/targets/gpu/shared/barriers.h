// Barriers that tile operators and parallel loops imply: where one touches memory that an earlier one touched since all
// threads last met, one of them writing, all threads meet before it. What threads do for themselves in kernels with
// thread variables is ordered among itself already (passes/thread_sync.h).
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// `meet`: how the kernel's threads meet, who may be but some of the block. `rings`: tiles that a software pipeline
// orders itself, within its loop. `share`: whether two buffers have memory in common, apart from views.
using SharesMemory = std::function<bool(const ir::BufferData* a, const ir::BufferData* b)>;
// `boards`: what reductions, and products of parts, exchange values through; they write it, all threads meet, they read
// it.
using Boards = std::unordered_map<const ir::StmtNode*, ir::Buffer>;
ir::Kernel place_barriers(const ir::Kernel& kernel, const std::vector<ir::Buffer>& rings, const Boards& boards,
                          const SharesMemory& share, const ir::Sync& meet = {});

}  // namespace tilepilot::targets::gpu
