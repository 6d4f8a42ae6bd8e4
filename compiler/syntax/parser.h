// Text to tree. Reports every independent error it can: after a bad statement it goes on at the next one.
#pragma once

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/syntax/tree.h"

namespace tilepilot::syntax {

// Brackets and blocks may nest this deep; more is `nesting_too_deep`.
inline constexpr int kMaxNesting = 100;

// Operators that chain to the left (`a + b + c`, `a.b.c`) do not nest brackets but make the tree deep: no expression is
// higher than this.
inline constexpr int kMaxTreeHeight = 400;

// The tree of a file already in `sources`, or null if `diagnostics` got an error.
ModuleRef parse(const SourceMap& sources, int32_t file, DiagnosticList& diagnostics);

}  // namespace tilepilot::syntax
