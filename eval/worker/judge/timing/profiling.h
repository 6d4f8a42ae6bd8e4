// Profiles a program whose verdict is settled: calls of their own, of the program and of eager, watched part by part.
// It decides nothing: where it fails, even where the program's process ends, a note says so.
#pragma once

#include "eval/profile/profile.h"
#include "eval/worker/judge/call_channel.h"
#include "eval/worker/judge/call_source.h"
#include "eval/worker/judge/examination.h"

namespace tilepilot::eval {

struct ProfileSides {
  const ReferenceSide& side;
  CallChannel& channel;
  CallSource& source;
  const ExaminationOptions& options;
  Profiling profiling;
  std::function<bool()> load_weights;  // the exported ones; false: the program's process failed
};

// @pre the verdict has times
void profile_verified(const ProfileSides& sides, Verdict& verdict);

}  // namespace tilepilot::eval
