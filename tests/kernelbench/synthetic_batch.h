// A batch as a long night leaves it: every ending, compiled baselines, several attempts with verdicts of their own,
// errors, notes, long names. Nothing of it was measured.
#pragma once

#include "kernelbench/report.h"

namespace tilepilot::kernelbench {

Batch synthetic_batch(int problems);
// What its runs' programs were.
std::vector<ProblemPage> synthetic_pages(const Batch& batch);

}  // namespace tilepilot::kernelbench
