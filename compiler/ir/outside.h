// Elements of tiles that do not exist: indices that are sure to leave a shared, fragment or local buffer. Nothing
// checks such an access when the program runs on a GPU.
#pragma once

#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

struct OutsideAccess {
  Span span;
  Buffer buffer;
  size_t axis;
  Bounds range;  // of the index on that axis
};

// One for each buffer, the first. Only what happens in every run counts: accesses under conditions, in `while` loops
// and in loops that end early are left out, and so are indices that are not affine.
std::vector<OutsideAccess> accesses_outside(const Kernel& kernel);

}  // namespace tilepilot::ir
