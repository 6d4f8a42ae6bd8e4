// Loops of few iterations that load from tensors, unrolled: all of their loads are on the way together, where the
// system's compiler would unroll them in part and wait for each part.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cuda {

// @pre lowered
// @post serial loops that a thread goes through for itself, and that load no more than registers can hold, are unrolled
ir::Stmt unroll_loads(const ir::Stmt& body);

}  // namespace tilepilot::targets::cuda
