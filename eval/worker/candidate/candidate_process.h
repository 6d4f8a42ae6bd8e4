// The role "candidate": one process for one candidate. It answers the judge's requests and never sees what is expected.
#pragma once

namespace tilepilot::eval {

// Serves the judge on the inherited socket until it closes. `in_namespaces`: it was started in some of its own. Returns
// the exit code.
int run_candidate(bool in_namespaces);

// How the process ends when memory runs out where no diagnostic can be made.
inline constexpr int kOutOfMemoryExit = 86;
// After abort().
inline constexpr int kAbortedExit = 87;

}  // namespace tilepilot::eval
