// The passes of this target, from staged IR to kernels that are ready to be lowered.
#pragma once

#include <unordered_set>

#include "compiler/diagnostics/result.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/schedule/manual_asynchrony.h"
#include "compiler/targets/gpu/shared/shared_arena.h"

namespace tilepilot::targets::gpu {

struct PlannedKernel {
  ir::Kernel kernel;  // with barriers
  Inference inference;
  SharedArena arena;
  std::vector<std::pair<Span, std::string>> notes;  // what could not be done as requested, and why
  ir::Sync sync;                                    // of its threads
  bool persistent = false;                          // its outermost loop is over blocks of the program's grid
  std::vector<Decision> decisions = {};             // of the passes
  bool async_proxy = false;                         // something but threads reads or writes shared memory
  int64_t first_thread = 0;                         // of its threads, in the block
};

// A part of the block's warps that runs its own code: its barrier, and the tiles that other roles use too, whose place
// is not its to choose.
struct WarpRole {
  ir::Sync sync;
  std::unordered_set<const ir::BufferData*> common;
  bool specialized = false;            // by warp_specialize.h, which says itself what runs on
  bool persistent = false;             // see PlannedKernel
  std::vector<ir::Buffer> rings = {};  // tiles whose barriers are in place
  std::vector<Decision> decisions = {};
  bool low_memory = false;               // of shared memory, at the cost of time: what is planned else does not fit
  std::optional<WholeBlock> block = {};  // what this and other roles do together
  std::unordered_set<const ir::BufferData*> lasting = {};  // tiles that are in use past the statements that name them
};

// The program with its kernels in the form that threads and tile operators share (see passes/pipeline.h).
Result<ir::Program> prepare(const ir::Program& program);
// One kernel of a prepared program. Errors: `unsupported_tile_feature`.
Result<PlannedKernel> plan_kernel(const ir::Kernel& kernel, const Machine& machine, const WarpRole& role = {});

}  // namespace tilepilot::targets::gpu
