// Elements of 4 bits (int4, uint4, float4_e2m1fn) that others see, as the bytes they are in: those of tensors, and of
// tiles that share memory with views. Before: each row of such a buffer has an even number of elements. After: no
// statement names such a buffer, but a view of it by bytes; other tiles keep theirs, which a target may hold as it
// likes. Two elements share a byte, so loops whose iterations write some are no longer parallel,
// and where the other half may be another block's the byte is changed as a whole. For threads that run side by side
// loops stay parallel, and every byte that is written is read and changed as a whole. Late, when loops over
// elements are fused, and before a simplification, which shortens most of the new indices.
#pragma once

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

Result<ir::Program> pack_nibbles(const ir::Program& program);
Result<ir::Program> pack_nibbles_side_by_side(const ir::Program& program);

}  // namespace tilepilot::passes
