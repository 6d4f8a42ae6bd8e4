// CUDA C++ for lowered kernels: what one thread does, statement by statement.
#pragma once

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cuda {

// Writes the statement to `context.body`; what has no form here is an error of the context.
void emit(c::Context& context, const ir::Stmt& stmt);

}  // namespace tilepilot::targets::cuda
