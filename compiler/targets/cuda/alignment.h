// Programs for tensors that begin anywhere. Code is written for tensors that begin at a multiple of 16 bytes, as what
// LibTorch allocates does; slices of those may not, and vectors of them would fault.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cuda {

// Bytes that the address is a multiple of, 16 at most.
int64_t alignment_of(const void* address);

// The program for buffer parameters that are aligned to these numbers of bytes, in their order.
// @pre as many as there are buffer parameters
ir::Program with_alignments(const ir::Program& program, const std::vector<int64_t>& alignments);

}  // namespace tilepilot::targets::cuda
