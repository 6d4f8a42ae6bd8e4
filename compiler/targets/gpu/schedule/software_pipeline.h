// Software pipelining: in a pipelined loop, the copies from global to shared memory at the start of an iteration run
// `num_stages - 1` iterations ahead of what uses them, asynchronously (cp.async), into a ring of `num_stages` tiles.
//
//   stages 0 .. S - 2 are copied, a group each
//   for k: wait for the group of k; barrier; copy the tile of k + S - 1, one group; the body of k
//
// One barrier an iteration is enough: the ring's slot that is written in iteration k was read in k - 1, before it.
//
// Where the body is one wgmma (sm_90a), it stays outstanding until the next one has been started:
//
//   for k: wait for the group of k; barrier; start the wgmma of k; wait for the wgmma of k - 1; barrier;
//          copy the tile of k + S - 1
//
// With one stage, for which there is one tile of each copy, TMA fills each tile again once it has been read:
//
//   for k: the body of k, where each tile is waited for before the first use, and after the last: barrier; copy the
//          tile of k + 1
//
// On sm_90a TMA makes the copies where it can: one thread issues them, and a barrier of each slot tells when its tiles
// have arrived. It fills all S slots before the loop, and a slot again from k = 1 on.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

struct PipelinedKernel {
  ir::Kernel kernel;
  std::vector<ir::Buffer> rings;                    // tiles whose barriers are in place; shape [stages, ...]
  std::vector<std::pair<Span, std::string>> notes;  // loops that stay as they are, and why
  std::vector<ir::Stmt> beginning = {};             // what the kernel begins with
  std::vector<Decision> decisions = {};             // which copies run ahead, by whom
};

// Copies that run ahead have CopyMode::group after this; pipelined loops are serial ones.
PipelinedKernel pipeline_loops(const ir::Kernel& kernel, const Machine& machine);

}  // namespace tilepilot::targets::gpu
