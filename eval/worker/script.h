// `tilepilot run`: a TileLang script in the evaluator, with torch through LibTorch and kernels on the CPU.
#pragma once

#include <string>

#include "compiler/stage/python/script.h"

namespace tilepilot::eval {

// Runs the file as `__main__`; what it prints goes to standard output, diagnostics to standard error. Gives the exit
// code: what the script asked for with SystemExit, else 0, 1 if it failed, 2 if it cannot be read.
int run_script(const stage::Script& script);

// The version of LibTorch that this program was built with.
std::string libtorch_version();

}  // namespace tilepilot::eval
