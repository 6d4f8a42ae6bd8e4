// One candidate's examination: load, trials, guards, timing, in this order; the first failure is the verdict.
#pragma once

#include "eval/judge.h"
#include "eval/worker/reference_side.h"

namespace tilepilot::eval {

struct ExaminationOptions {
  const JudgeOptions& judge;
  std::filesystem::path executable;
};

// `verified`: what an earlier examination of the same program found, or null. Then two trials lead to the timing, and
// the rest of its findings stand.
Verdict examine(const ReferenceSide& side, const CheckRequest& request, const ExaminationOptions& options,
                const Verdict* verified = nullptr);

}  // namespace tilepilot::eval
