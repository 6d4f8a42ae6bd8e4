// Which target's code a device runs.
#pragma once

#include <string>
#include <string_view>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime::cuda {

// For hints.
constexpr std::string_view kTargets = "the targets are `cuda:sm_80`, for 8.0 to 8.9, and `cuda:sm_90a`, for 9.0";
// What speaks against code for a GPU of a compute capability that no target is for.
std::string_view what_is_lacking(int capability);

// "sm_80" or "sm_90a", for a device of this compute capability (90 for 9.0). Errors: driver_missing, with what other
// devices would need.
Result<std::string> architecture_of(int capability);

// Whether a device runs the code of `architecture`: 9.0 that of sm_80, too. Errors: driver_missing.
Status check_runs(const std::string& architecture, int capability);

}  // namespace tilepilot::runtime::cuda
