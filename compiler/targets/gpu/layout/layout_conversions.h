// Layout conversions: copies from one fragment to another of the same shape, by shuffles of the lanes of each warp.
// They stand where two uses of a tile want it held in different ways and no element has to cross warps.
#pragma once

#include <optional>

#include "compiler/ir/stmt.h"
#include "compiler/layout/warp_moves.h"

namespace tilepilot::targets::gpu {

bool is_layout_conversion(const ir::Stmt& stmt);

// None where elements cross warps, or where shared memory costs less (layout_cost.h).
std::optional<layout::WarpMoves> conversion_by_shuffles(ir::DType type, const layout::Fragment& from,
                                                        const layout::Fragment& to);
// The shuffles of each thread that bring a fragment to where the statement wants it, and back if it writes it; -1 if
// there is no such way.
int64_t shuffles_between(const ir::Stmt& stmt, const ir::Buffer& buffer, const layout::Fragment& held,
                         const layout::Fragment& wanted);

}  // namespace tilepilot::targets::gpu
