// What a launch does with its blocks: each by itself, or several together where they share operands.
#pragma once

#include "compiler/targets/cpu/plan/block_coarsening.h"

namespace tilepilot::targets::cpu {

struct LaunchPlan {
  ir::Kernel block;                          // what one block does
  std::optional<CoarsenedBlocks> coarsened;  // what several do
};

// `kernel` is in the form that code is generated from.
LaunchPlan plan_launch(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::cpu
