// A measured time below what the machine can do is a finding, not a win (eval/graph/roofline.h).
#pragma once

#include "eval/graph/reference.h"
#include "eval/judge.h"

namespace tilepilot::eval {

// Rejects a timed program on a GPU by the guard `roofline`; on the processor, whose rates are estimates, adds a note.
void hold_against_roofline(const Reference& reference, const JudgeOptions& options, Verdict& verdict);

}  // namespace tilepilot::eval
