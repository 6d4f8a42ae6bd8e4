// The role "candidate": one process for one candidate. It answers the judge's requests and never sees what is expected.
#pragma once

namespace tilepilot::eval {

// Serves the judge on the inherited socket until it closes. Returns the exit code.
int run_candidate();

// How the process ends when memory runs out where no diagnostic can be made.
inline constexpr int kOutOfMemoryExit = 86;

}  // namespace tilepilot::eval
