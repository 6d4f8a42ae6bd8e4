// `tilepilot run`: a TileLang script in the evaluator, with torch through LibTorch and kernels on the CPU.
#pragma once

#include <string>

namespace tilepilot::eval {

// Runs the file as `__main__`; what it prints goes to standard output, diagnostics to standard error. Gives the exit
// code: 0, 1 if the script failed, 2 if it cannot be read.
int run_script(const std::string& path);

// The version of LibTorch that this program was built with.
std::string libtorch_version();

}  // namespace tilepilot::eval
