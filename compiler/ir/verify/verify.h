// The rules that every Program keeps, at every point of the pipeline. A table of rules; each violation is one
// `ir_invalid` diagnostic that names its rule.
#pragma once

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

// True if the program is valid; otherwise says every violation.
bool verify(const Program& program, DiagnosticList& diagnostics);

struct VerifierRule {
  std::string_view name;
  std::string_view sentence;
};
std::vector<VerifierRule> verifier_rules();

}  // namespace tilepilot::ir
