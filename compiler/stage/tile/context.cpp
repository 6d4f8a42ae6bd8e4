#include "compiler/stage/tile/context.h"

#include <fmt/format.h>

namespace tilepilot::stage {

void TileContext::announce_ignored(const std::string& request, Span span) {
  if (!announced_.insert(request).second) return;
  interpreter.diagnostics().add(
      {DiagnosticKind::ignored_request, span, fmt::format("{} has no effect on this target", request)});
}

}  // namespace tilepilot::stage
