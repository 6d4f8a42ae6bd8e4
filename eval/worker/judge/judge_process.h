// The role "judge": holds the reference, starts a process per candidate, and says what each is worth.
#pragma once

#include <filesystem>

namespace tilepilot::eval {

// Serves the client on the inherited socket until it closes. `executable`: this program, for candidates.
int run_judge(const std::filesystem::path& executable);

}  // namespace tilepilot::eval
