// Other buffers in the place of some, of the same shape or with room for more.
#pragma once

#include <unordered_map>

#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

// Views of what is replaced are among them.
using Replacements = std::unordered_map<const BufferData*, Buffer>;
Stmt replace_buffers(const Stmt& stmt, const Replacements& by);
// In its allocations, too.
Kernel replace_buffers(const Kernel& kernel, const Replacements& by);
// The same memory for all threads, with views of what has been replaced so far.
Buffer as_shared(const Buffer& fragment, const Replacements& by);

}  // namespace tilepilot::ir
