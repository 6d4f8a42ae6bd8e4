// The text forms of a program at every stage, for `tilepilot compile --emit`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/driver/compile.h"

namespace tilepilot::driver {

// What can be asked for: tokens, tree, ir (as staged), ir:PASS (after that pass), source; on a
// GPU target also ir:planned, ir:lowered, layouts, explain and asm.
std::vector<std::string> emission_names();

struct Emission {
  std::optional<std::string> text;                         // absent if there was an error
  std::vector<std::pair<std::string, std::string>> files;  // drawings of layouts: names and contents
  DiagnosticList diagnostics;
};

// `what` is one of emission_names(); another name is a `bad_usage` error.
Emission emit(SourceMap& sources, const CompileRequest& request, std::string_view what);

}  // namespace tilepilot::driver
