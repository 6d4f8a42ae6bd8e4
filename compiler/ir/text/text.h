// The text form of the IR. Printing, then reading, gives the same IR (spans excepted).
#pragma once

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

std::string to_text(const Program& program);
std::string to_text(const Expr& expr);
std::string to_text(const Stmt& stmt);

// Reads the printed form; nullopt and `ir_syntax_error` diagnostics if it is not one.
std::optional<Program> read_text(const SourceMap& sources, int32_t file, DiagnosticList& diagnostics);

// Equal up to names of variables and buffers bound at matching places, and spans.
bool structurally_equal(const Program& a, const Program& b);
bool structurally_equal(const Expr& a, const Expr& b);

}  // namespace tilepilot::ir
