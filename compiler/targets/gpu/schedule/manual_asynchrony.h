// Copies and GEMMs that a program itself makes asynchronous (`T.tma_copy`, `T.async_copy`, `T.wgmma_gemm`) and waits
// for. They are as asynchronous as it says where the machine has an instruction for them; others are done at once,
// which every wait allows, and a decision says why. Copies for several blocks of a
// cluster are TMA loads, whether the program waits for them or not.
#pragma once

#include <unordered_set>

#include "compiler/diagnostics/result.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

struct ManualAsynchrony {
  ir::Kernel kernel;
  std::unordered_set<const ir::BufferData*> tiles;  // that asynchronous copies or wgmma use
  std::vector<Decision> decisions;
  Error error;  // what blocks of a cluster cannot share
};

// What all threads of a block do, of which a kernel may be a part.
struct WholeBlock {
  std::unordered_set<const ir::BufferData*> viewed;   // seen as other types or shapes
  std::unordered_set<const ir::BufferData*> written;  // by copies, too
  std::unordered_set<const ir::BufferData*> apart;    // tiles whose rows may not follow each other in memory
};
WholeBlock whole_block(const ir::Kernel& kernel);

// `sync`: the barrier of the kernel's threads.
// @post before each bulk load one thread announces its bytes at the barrier
ManualAsynchrony keep_asynchrony(const ir::Kernel& kernel, const Machine& machine, const ir::Sync& sync,
                                 const WholeBlock& block);

}  // namespace tilepilot::targets::gpu
