// Swizzles and padding for shared tiles that loops walk so that lanes wait for each other's banks.
#pragma once

#include <unordered_set>

#include "compiler/targets/gpu/layout/layout_conflicts.h"

namespace tilepilot::targets::gpu {

// Gives tiles that lie row by row a conflict-free layout (layout/shared_layout.h) where that saves at least a quarter
// of the wavefronts of the loops that read and write them. `viewed`: tiles with several names, which stay as they are.
// @pre loops have a layout
void avoid_bank_conflicts(const ir::Kernel& kernel, const FragmentUsers& users,
                          const std::unordered_set<const ir::BufferData*>& viewed, Inference& inference);

// What loops and reductions cost, all in all, in issue slots. @pre they have a layout
int64_t cost_of(const ir::Kernel& kernel, const FragmentUsers& users, const Inference& inference);

// Layouts of row-major tiles, whose loops cost clearly more than they had to, that might let them cost less if they
// were dealt out otherwise: a tile's swizzle, or rows padded by a word, so that lanes find a column as fast as a row.
// Only of tiles that nothing but loops reads and writes.
std::vector<Inference::TileChoice> tiles_to_try(const ir::Kernel& kernel, const FragmentUsers& users,
                                                const std::unordered_set<const ir::BufferData*>& viewed,
                                                const Inference& inference);

}  // namespace tilepilot::targets::gpu
