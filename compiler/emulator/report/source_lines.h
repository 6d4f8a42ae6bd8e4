// The lines of the tile program in generated code: each `#line` directive becomes a statement that tells the emulator
// where the running thread is.
#pragma once

#include <string>
#include <vector>

#include "compiler/emulator/report/report.h"

namespace tilepilot::emulator {

struct MarkedSource {
  std::string text;
  std::vector<SourceLine> sites;  // by number; the first is no line
};

// Directives count where a statement may stand: inside a function, after `;`, `{` or `}`. The others go away.
MarkedSource mark_lines(const std::string& source);

}  // namespace tilepilot::emulator
