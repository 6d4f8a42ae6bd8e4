// Defects as a diagnostic: what a user sees who runs a kernel in the emulator.
#pragma once

#include "compiler/diagnostics/result.h"
#include "compiler/emulator/report/report.h"

namespace tilepilot::emulator {

// `emulated_defect` with the first defect as its message and the others as notes. @pre there are defects
Error error_of(const Report& report, const std::string& kernel, Span call);

}  // namespace tilepilot::emulator
