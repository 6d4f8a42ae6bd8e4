// What a launch of a program writes.
#pragma once

#include <vector>

#include "compiler/runtime/kernel.h"

namespace tilepilot::eval {

// The arguments that kernels write. Without memory: left out.
std::vector<const runtime::TensorView*> written_views(const ir::Program& program,
                                                      const std::vector<runtime::Argument>& arguments);

}  // namespace tilepilot::eval
