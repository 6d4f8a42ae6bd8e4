#include "compiler/diagnostics/result.h"

namespace tilepilot {

void DeleteDiagnostic::operator()(Diagnostic* diagnostic) const noexcept { delete diagnostic; }

Error make_error(Diagnostic diagnostic) { return Error(new Diagnostic(std::move(diagnostic))); }

Error make_error(DiagnosticKind kind, Span span, std::string_view message, std::string_view hint) {
  return make_error(Diagnostic{kind, span, std::string(message), {}, std::string(hint)});
}

}  // namespace tilepilot
