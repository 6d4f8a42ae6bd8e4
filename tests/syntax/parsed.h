// A parsed text with its source map and diagnostics, for the tests of this folder.
#pragma once

#include <string>

#include "compiler/diagnostics/render.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/print.h"

namespace tilepilot::syntax {

struct Parsed {
  explicit Parsed(std::string text, std::string name = "test.py") {
    file = sources.add(std::move(name), std::move(text));
    module = parse(sources, file, diagnostics);
  }

  // The first error as "line:column kind: message", or "" without one.
  std::string first_error() const {
    if (diagnostics.items().empty()) return "";
    const Diagnostic& error = diagnostics.items().front();
    Position at = sources.position(error.span.file, error.span.begin);
    return std::to_string(at.line) + ":" + std::to_string(at.column) + " " + std::string(info(error.kind).name) + ": " +
           error.message;
  }
  size_t error_count() const { return diagnostics.items().size(); }

  SourceMap sources;
  DiagnosticList diagnostics;
  int32_t file = -1;
  ModuleRef module;
};

// The only expression of a module of one expression statement.
inline const Expr& only_expression(const Parsed& parsed) {
  return *std::get<ExprStmt>(parsed.module->body.at(0).node).value;
}

}  // namespace tilepilot::syntax
