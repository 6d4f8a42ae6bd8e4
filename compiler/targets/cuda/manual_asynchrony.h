// Copies and products that a program itself makes asynchronous (`T.tma_copy`, `T.async_copy`, `T.wgmma_gemm`) and waits
// for. They are as asynchronous as it says where the machine has an instruction for them; others are done at once,
// which every wait allows, and a decision says why.
#pragma once

#include <unordered_set>

#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/decisions.h"

namespace tilepilot::targets::cuda {

struct ManualAsynchrony {
  ir::Kernel kernel;
  std::unordered_set<const ir::BufferData*> tiles;  // that copies or products use while the threads go on
  std::vector<Decision> decisions;
};

// What all threads of a block do, of which a kernel may be a part.
struct WholeBlock {
  std::unordered_set<const ir::BufferData*> viewed;   // seen as other types or shapes
  std::unordered_set<const ir::BufferData*> written;  // by copies, too
};
WholeBlock whole_block(const ir::Kernel& kernel);

// `meet`: how the kernel's threads meet.
// @post before each bulk load one thread announces its bytes at the barrier
ManualAsynchrony keep_asynchrony(const ir::Kernel& kernel, Architecture architecture, const ir::Sync& meet,
                                 const WholeBlock& block);

}  // namespace tilepilot::targets::cuda
