// The rules that every Program keeps, at every point of the pipeline. A table of rules; each violation is one
// `ir_invalid` diagnostic.
#pragma once

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

// True if the program is valid; otherwise says every violation.
bool verify(const Program& program, DiagnosticList& diagnostics);

}  // namespace tilepilot::ir
