// Algebra on expressions and what follows from it for statements: branches whose condition is decided, loops of no or
// one iteration, definitions that nothing uses. The guards that a program needs at the edge of a tensor vanish where
// the ranges of loop and block variables prove them.
//
// Holds before: the program is valid. Holds after: it is valid and means the same, integer wrapping included.
#pragma once

#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// `known`: of variables that the program does not bind.
ir::Program simplify(const ir::Program& program, const ir::VarRanges& known = {});
ir::Expr simplify(const ir::Expr& expr, const ir::VarRanges& ranges);

}  // namespace tilepilot::passes
