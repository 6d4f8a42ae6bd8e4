// The source of a library for the processor: the runtime, the prelude of generated code, and for each kernel its code
// and the function that launches it.
#pragma once

#include "compiler/diagnostics/result.h"
#include "compiler/export/interface.h"
#include "compiler/source/source.h"

namespace tilepilot::exporting {

Result<std::string> cpu_source(const Library& library, const SourceMap& sources, DiagnosticList& warnings);

}  // namespace tilepilot::exporting
