// Other buffers of the same shape in the place of some.
#pragma once

#include <unordered_map>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cuda {

// Views of what is replaced are among them.
using Replacements = std::unordered_map<const ir::BufferData*, ir::Buffer>;
ir::Stmt replace_buffers(const ir::Stmt& stmt, const Replacements& by);
// In its allocations, too.
ir::Kernel replace_buffers(const ir::Kernel& kernel, const Replacements& by);
// The same memory for all threads, with views of what has been replaced so far.
ir::Buffer as_shared(const ir::Buffer& fragment, const Replacements& by);

}  // namespace tilepilot::targets::cuda
