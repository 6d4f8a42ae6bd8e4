// What becomes of a program on this target, as text: layouts, and IR between the steps.
#pragma once

#include "compiler/targets/cuda/codegen.h"

namespace tilepilot::targets::cuda {

// For each kernel: layouts of fragments and shared tiles as tables, and how products are computed.
Result<std::string> layouts_text(const ir::Program& program, Architecture architecture);
// IR with barriers, before lowering or after it.
Result<std::string> ir_text(const ir::Program& program, Architecture architecture, bool lowered);

}  // namespace tilepilot::targets::cuda
