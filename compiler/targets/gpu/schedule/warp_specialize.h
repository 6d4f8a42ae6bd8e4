// Warp specialisation and persistent blocks (sm_90a), for kernels whose loops are GEMMs with operands that TMA can
// load: matrix products, attention. Adds what a person would write with `T.ws`: a producer warpgroup, one thread of
// which issues TMA loads as slots of the ring become free, while the consumer warpgroups compute and store; hardware
// barriers order the two (CUTLASS: "warp-specialized persistent cooperative"). Where all blocks have the same work, or
// it is known which have most, the grid has as many blocks as the GPU runs at once, and each processes several blocks
// of the program's grid, so that tiles of the next one arrive while one is stored; else the hardware schedules the
// blocks. This file decides which role does which of the kernel's statements; tma_pipeline.h has the barriers,
// tile_scheduler.h the order of blocks.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

struct SpecializedKernel {
  ir::Kernel kernel;              // with roles; its grid is what may run at once, at most
  std::vector<ir::Buffer> rings;  // tiles whose barriers are in place
  bool persistent;                // its blocks go on to others of the program's grid
  std::vector<Decision> decisions = {};
};

// None where it would change what the program says, or gain nothing. Copies that run ahead have CopyMode::bulk_load
// after this, and wgmma are asynchronous. `preloads`: the producer loads tiles that a block needs once, too, so that
// they arrive while the block before is stored; they share memory with no other tile. `obstacles`: why not, is added.
std::optional<SpecializedKernel> specialize_warps(const ir::Kernel& kernel, const Machine& machine, bool preloads,
                                                  std::vector<Decision>& obstacles);

}  // namespace tilepilot::targets::gpu
