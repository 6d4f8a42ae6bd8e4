// One candidate's examination: load, trials, guards, timing, in this order; the first failure is the verdict.
#pragma once

#include "eval/judge.h"
#include "eval/worker/reference_side.h"

namespace tilepilot::eval {

struct ExaminationOptions {
  const JudgeOptions& judge;
  std::filesystem::path executable;
};

Verdict examine(const ReferenceSide& side, const CheckRequest& request, const ExaminationOptions& options);

}  // namespace tilepilot::eval
