// Warp specialisation and persistent blocks (sm_90a), for kernels whose loops are products that the copy engine feeds:
// matrix products, attention. What a person would write with `T.ws`: 128 threads more, one of which asks for tiles as
// slots of the ring become free, while the others compute and store; hardware barriers tell both sides (Hopper's
// "producer and consumer warps"; CUTLASS calls the whole "persistent cooperative"). Where all blocks have the same
// work, or it is known which have most, they are as many as the GPU runs at once, and take one block of the program's
// grid after the other, so that tiles of the next one arrive while one is stored; else the machine hands them out. What
// each side does of the kernel's statements is decided here; tma_pipeline.h has the barriers, tile_scheduler.h the
// order of blocks.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

struct SpecializedKernel {
  ir::Kernel kernel;              // with roles; its grid is what may run at once, at most
  std::vector<ir::Buffer> rings;  // tiles whose meetings are in place
  bool persistent;                // its blocks go on to others of the program's grid
  std::vector<Decision> decisions = {};
};

// None where it would change what the program says, or gain nothing. Copies that run ahead have CopyMode::bulk_load
// after this, and products run on. `feeds_early`: tiles that a block needs once are asked for by those threads, too, so
// that they arrive while the block before is stored; their memory is theirs alone.
std::optional<SpecializedKernel> specialize_warps(const ir::Kernel& kernel, Architecture architecture,
                                                  bool feeds_early);

}  // namespace tilepilot::targets::gpu
