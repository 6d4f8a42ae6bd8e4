// Loops that store, row by row, what they compute of a fragment, where a condition on the row holds: the rows of a
// group or of a sequence end within a tile. `for i, j in T.Parallel(M, N): if row + i < end: Y[row + i, column + j] =
// s[i, j]`
#pragma once

#include <optional>

#include "compiler/ir/effects.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

struct GuardedRows {
  const ir::For& loop;
  const ir::If& guard;
  const ir::Store& store;
  ir::Buffer held;  // the fragment, whose elements have the loop's variables for indices
};
// Nullopt if the loop does anything else, if its condition is about columns or constants alone, or if its value may be
// computed only where the condition holds. `written`: what the kernel changes.
std::optional<GuardedRows> guarded_rows(const ir::For& loop, const ir::BufferSet& written);

}  // namespace tilepilot::targets::gpu
