// Conversions to floats of 8 bits, two at a time: the machine's instruction makes two of them and costs the same for
// one.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cuda {

// @pre lowered: elements of registers have one index
// @post an unrolled loop that converts one element in each iteration, into places that follow each other, is a loop of
// half as many iterations that call `narrow_pair`
ir::Stmt pair_conversions(const ir::Stmt& body);

}  // namespace tilepilot::targets::cuda
