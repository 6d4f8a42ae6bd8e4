// Privatisation: what an iteration of a parallel or vectorized loop keeps in a local buffer, writes before it reads it,
// and shares with nothing outside the loop. Each iteration has an array of its own, declared where it begins; where a
// chunk of iterations runs as the lanes of a vector, each lane has elements of its own (scalar expansion, see lanes.h).
#pragma once

#include "compiler/ir/effects.h"
#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

// `uses`: how often the kernel's body names each buffer.
ir::BufferSet find_private_buffers(const ir::Kernel& kernel, const c::IntegerFacts& facts,
                                   const std::unordered_map<const ir::BufferData*, int64_t>& uses);
// Declares those that the body names.
void declare_private_buffers(c::Context& context, const ir::Stmt& body);

}  // namespace tilepilot::targets::cpu
