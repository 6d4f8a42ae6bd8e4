// Which kernel of a program whose values are wrong is the first to go wrong: the call that failed is made once more,
// what each launch writes comes to the judge, and the judge holds it against what the model computes on the way. It
// decides nothing, and the candidate's process learns nothing of the model's values.
#pragma once

#include <functional>

#include "eval/worker/judge/call_channel.h"

namespace tilepilot::eval {

struct StageSides {
  const ReferenceSide& side;
  CallChannel& channel;
  const Trial& trial;
  const Batch& batch;                  // the trial's one call
  std::function<bool()> load_weights;  // those of the trial; false: the program's process failed
};

// Adds `stages`, or a note why there are none, and notes on launches that leave elements unwritten. Takes about two
// seconds at most.
void add_stages(const StageSides& sides, Verdict& verdict);

}  // namespace tilepilot::eval
