// Diagnostics as text for people (position, source line, carets, notes, hint) and as JSON for programs.
#pragma once

#include <string>

#include "compiler/diagnostics/diagnostic.h"

namespace tilepilot {

struct RenderOptions {
  bool color = false;
};

// Ends with a newline.
std::string render(const SourceMap& sources, const Diagnostic& diagnostic, const RenderOptions& options = {});
std::string render(const SourceMap& sources, const DiagnosticList& diagnostics, const RenderOptions& options = {});

// One object {kind, severity, message, file, line, column, end_line, end_column, notes, hint}; without a position
// the five members about it are absent.
std::string render_json(const SourceMap& sources, const Diagnostic& diagnostic);
// An array of such objects.
std::string render_json(const SourceMap& sources, const DiagnosticList& diagnostics);

}  // namespace tilepilot
