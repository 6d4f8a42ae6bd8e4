// Parallel loops with serial loops inside, as vector code. Iterations of a parallel loop are independent, so serial
// loops that all of them take the same way go outside, and a chunk of iterations (lanes) does each statement before the
// next: the loop fission of MCUDA (see passes/threads/thread_regions.h), which here ends at serial loops too. What a
// lane keeps in a buffer of its own then stays in vector registers.
#pragma once

#include "compiler/targets/cpu/loops/lane_plan.h"

namespace tilepilot::targets::cpu {

struct Lanes {
  LaneFacts facts;
  LanePlan plan;
};
// Nullopt if the body has neither such loops nor runs (see lane_runs.h), or iterations that share memory.
std::optional<Lanes> choose_lanes(const c::Context& context, const std::vector<Dimension>& dimensions,
                                  const ir::Stmt& body);
void emit_lanes(c::Context& context, const Lanes& lanes, const ir::Stmt& body);

}  // namespace tilepilot::targets::cpu
