// Runs one input through the compiler, as far as it gets, and collects what it had to say.
#pragma once

#include <string>

#include "compiler/diagnostics/diagnostic.h"

namespace tilepilot::testing {

// `name` is a file of cases/. A `.py` file is parsed and run, and its kernels are staged, compiled and launched as it
// asks; a `.ir` file is read and verified. Returns the rendered diagnostics.
std::string diagnostics_of_case(const std::string& name);

}  // namespace tilepilot::testing
