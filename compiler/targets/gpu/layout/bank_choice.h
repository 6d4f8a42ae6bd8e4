// Swizzles for shared tiles that loops walk so that lanes wait for each other's banks.
#pragma once

#include <unordered_set>

#include "compiler/targets/gpu/layout/layout_conflicts.h"

namespace tilepilot::targets::gpu {

// Gives tiles that lie row by row a conflict-free layout (layout/shared_layout.h) where that halves at least the
// wavefronts of the loops that read and write them. `viewed`: tiles with several names, which stay as they are.
// @pre loops have a layout
void avoid_bank_conflicts(const ir::Kernel& kernel, const FragmentUsers& users,
                          const std::unordered_set<const ir::BufferData*>& viewed, Inference& inference);

}  // namespace tilepilot::targets::gpu
