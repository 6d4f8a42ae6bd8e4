// Times eager and candidates as KernelBench's script does, beside our own timing, and decides nothing by it. What some
// of these calls returned is compared, as in other batches.
#pragma once

#include "eval/worker/judge/timing/side_by_side.h"

namespace tilepilot::eval {

struct KernelBenchSides {
  const ReferenceSide& side;
  CallSource& source;
  EagerCalls& eager;
  const CallCheck& check;
  bool single = false;  // only the first call after the seed can be compared
  double time_limit_s = 0;
};

// Of the contestants that have not failed. One that fails here has its `failure`; where it cannot be done, for want of
// memory or of time, a note says so.
// @pre their times by our own rule are known, and eager has the weights that they have
void time_as_kernelbench(const KernelBenchSides& sides, std::vector<Contestant>& contestants);

// Means and so on of trials' seconds. @pre there are some
KernelBenchTimes kernelbench_times(const std::vector<double>& seconds);
// Why a program with these times is not timed so; empty: it is.
std::string kernelbench_obstacle(const Verdict& timed, double time_limit_s);
// What a reader of both speed-ups should know; empty: nothing.
std::string kernelbench_remark(const KernelBenchTiming& timing, double speedup);

}  // namespace tilepilot::eval
