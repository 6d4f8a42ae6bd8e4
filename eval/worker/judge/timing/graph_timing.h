// Times launch-bound candidates and eager as CUDA graphs, beside the ordinary times: in rounds of their own, in each of
// which both sides capture one call on fresh inputs and replay it. It decides nothing; what a replay returned is
// compared, and where there is no time, a note says why.
#pragma once

#include "eval/worker/judge/timing/side_by_side.h"

namespace tilepilot::eval {

// Whether a call, in microseconds, takes less than launching kernels does.
bool is_launch_bound(const Verdict& verdict);

struct GraphSides {
  const ReferenceSide& side;
  CallSource& source;
  EagerCalls& eager;
  const CallCheck& check;
  bool single = false;  // only the first call after the seed can be compared: replays are no such calls
  double time_limit_s = 0;
};

// Of the contestants that are launch-bound and have not failed. @pre eager has the weights that they have
void time_as_graphs(const GraphSides& sides, std::vector<Contestant>& contestants);

// What rounds come to, by round and in seconds.
GraphTiming graph_timing(const std::vector<double>& eager, const std::vector<double>& candidate);

}  // namespace tilepilot::eval
