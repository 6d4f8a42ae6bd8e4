// Launches that do not run, to see whether they matter.
#pragma once

#include <c10/core/Device.h>

#include "compiler/runtime/kernel.h"

namespace tilepilot::eval {

// What kernels would write then holds what its memory held (`nothing`), or one number everywhere: else a result that is
// next to zero and added to the answer, or next to one and multiplied with it, would seem to matter.
enum class Ghost { none, nothing, zeros, ones };

// Of `nothing`: nothing. Elements of types that LibTorch does not know stay as they are.
Status launch_ghost(Ghost ghost, const ir::Program& program, const std::vector<runtime::Argument>& arguments,
                    c10::Device device);

}  // namespace tilepilot::eval
