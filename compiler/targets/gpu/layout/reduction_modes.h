// Which threads a reduction combines: lanes of a warp by shuffles, warps through shared memory.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/layout/fragment.h"

namespace tilepilot::targets::gpu {

// Threads whose numbers differ by multiples of `weight`: its digit, of `extent` values, in the number of the thread.
struct ThreadMode {
  int64_t weight = 1, extent = 1;
};

// The modes of a fragment's threads that run along an axis.
std::vector<ThreadMode> modes_along(const layout::Fragment& fragment, size_t axis);
// Those that lanes of a warp combine by shuffles, and the others; a mode may have a part in both.
struct SplitModes {
  std::vector<ThreadMode> lanes, warps;
};
SplitModes split_modes(const std::vector<ThreadMode>& along, int64_t threads);

// Threads of other warps are told apart by whole warps, so that lanes can be left out.
bool may_be_compact(const SplitModes& modes);

// Elements of scratch for the values of so many threads after shuffles.
int64_t scratch_size(const SplitModes& modes, int64_t threads, bool compact);

// Elements that values are combined in.
ir::DType accumulator_type(ir::DType type);

// What changes no result of a reduction.
ir::Expr identity_of(ir::ReduceOp op, ir::DType type);

}  // namespace tilepilot::targets::gpu
