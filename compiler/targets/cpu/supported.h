// What programs say that this target cannot do, found before any pass runs so that messages name the program's own
// lines.
#pragma once

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

// `unsupported_tile_feature` for barriers of a grid and foreign functions. Copies and gemms that need not wait are done
// at once, which every wait allows.
Status check_supported(const ir::Program& program);

// Warns of what the program asks for and no loop here heeds: the order of blocks.
void announce_ignored(const ir::Program& program, DiagnosticList& warnings);

}  // namespace tilepilot::targets::cpu
