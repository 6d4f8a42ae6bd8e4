// When the warps of a block do what the emulator saw them do: their steps, each for as many cycles as a small model of
// the machine says, in the order that barriers and copies allow. The emulator knows the order, not the time; the model
// is that of tile sizes (targets/gpu/estimate) and its rates are those of the machine.
//
// A warp issues its steps in order. Its four neighbours modulo 4 share a quarter of the multiprocessor: tensor core and
// arithmetic units. Wavefronts of shared memory and bytes from global memory go through one pipe each. A load's latency
// is paid before the next step that is no load. The block has the multiprocessor for itself, and no copy misses L2.
#pragma once

#include "compiler/emulator/report/step_log.h"
#include "compiler/targets/gpu/machine/machine.h"
#include "show/picture.h"

namespace tilepilot::show {

// A shared tile that copies go to.
struct CopyTarget {
  std::string name;
  int64_t offset = 0, bytes = 0, stages = 1;
};

struct ReplayInput {
  const std::vector<emulator::Step>& steps;
  const targets::gpu::Machine& machine;
  std::string file;         // whose lines are told
  int64_t block_warps = 1;  // each block has a multiprocessor; rows are those of the first
  std::vector<CopyTarget> targets = {};
};

// A row for each warp, for each stage that copies go to, and one for the tensor cores. `group` of warps is empty.
Timeline replay(const ReplayInput& input);

}  // namespace tilepilot::show
