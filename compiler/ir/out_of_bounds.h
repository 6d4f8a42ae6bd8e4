// Elements of tiles that do not exist: indices that are sure to leave a shared, fragment or local buffer. Nothing
// checks such an access when the program runs on a GPU.
#pragma once

#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/replace_buffers.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

struct OutOfBoundsAccess {
  Span span;
  Buffer buffer;
  size_t axis;
  Bounds range;  // of the index on that axis
};

// One for each buffer, the first. Only what happens in every run counts: accesses under conditions, in `while` loops
// and in loops that end early are left out, and so are indices that are not affine.
std::vector<OutOfBoundsAccess> accesses_out_of_bounds(const Kernel& kernel);

// Of fragments that such accesses leave upwards, larger ones that hold them: what lies in registers need not have the
// shape that was asked for, and programs rely on that. Fragments that are views, or have some, stay as they are.
Replacements wider_fragments(const Kernel& kernel);

}  // namespace tilepilot::ir
