// Which target's code a device runs.
#pragma once

#include <string>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime::cuda {

// "sm_80" or "sm_90a", for a device of this compute capability (90 for 9.0). Errors: driver_missing, with what other
// devices would need.
Result<std::string> architecture_of(int capability);

// Whether a device runs the code of `architecture`: 9.0 that of sm_80, too. Errors: driver_missing.
Status check_runs(const std::string& architecture, int capability);

}  // namespace tilepilot::runtime::cuda
