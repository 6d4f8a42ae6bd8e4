// Loads of tensors that a kernel does not write, issued before a barrier: what a row is multiplied with after its
// sum is known comes from memory while the sum is made.
#pragma once

#include <unordered_set>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cuda {

// @pre lowered: loads of vectors are calls of `copy_vector`, from tensors into registers
// @post each load stands where it did, or before statements that neither write memory that others see nor wait for
// others but the threads of the block; loads keep their order
ir::Stmt hoist_loads(const ir::Stmt& body);

// Tensors that nothing in the body writes, under any name; none where that is not known.
// @pre lowered
std::unordered_set<const ir::BufferData*> read_only_tensors(const ir::Stmt& body);

}  // namespace tilepilot::targets::cuda
