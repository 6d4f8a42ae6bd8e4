// Memory of which each iteration of a serial loop accesses elements of its own, `x[i, h * 64 + j]` of all j < 64 in a
// loop over h: no iteration needs to wait for what another one does there.
#pragma once

#include <unordered_set>

#include "compiler/ir/stmt.h"
#include "compiler/targets/c/integer_facts.h"

namespace tilepilot::targets::gpu {

// Sound: what is not sure to be told apart is not among them. `facts`: of the kernel that the loop is in.
std::unordered_set<const ir::BufferData*> memory_apart(const ir::Kernel& kernel, const ir::For& loop,
                                                       const c::IntegerFacts& facts);

}  // namespace tilepilot::targets::gpu
