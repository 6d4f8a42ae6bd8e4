// Times a candidate beside eager: samples of the two alternate, each in its own process, on the same number of threads,
// while the other sleeps.
#pragma once

#include "eval/worker/candidate_link.h"
#include "eval/worker/reference_side.h"

namespace tilepilot::eval {

// Fills in candidate, eager and generated_share. A verdict instead: the candidate failed while it was timed.
std::optional<Verdict> time_pair(const ReferenceSide& side, CandidateLink& link, const JudgeOptions& options,
                                 Verdict& verdict);

}  // namespace tilepilot::eval
