// What threads hold, combined over some of them, so that each of these knows the result: lanes of a warp by shuffles,
// warps through shared memory.
#pragma once

#include "compiler/targets/cuda/lower.h"

namespace tilepilot::targets::cuda {

// Threads whose numbers differ by multiples of `weight`: its digit, of `extent` values, in the number of the thread.
struct ThreadMode {
  int64_t weight = 1, extent = 1;
};

struct ThreadReduction {
  ir::Buffer values;  // of the thread, a result for each; local
  std::function<ir::Expr(const ir::Expr& a, const ir::Expr& b)> combined;
  ir::Expr identity;  // null: none is known, or it may change a sign or a NaN
  std::vector<ThreadMode> along;
};

// The modes of a fragment's threads that run along an axis.
std::vector<ThreadMode> modes_along(const layout::Fragment& fragment, size_t axis);
// Those that lanes of a warp combine by shuffles, and the others; a mode may have a part in both.
struct SplitModes {
  std::vector<ThreadMode> lanes, warps;
};
SplitModes split_modes(const std::vector<ThreadMode>& along, int64_t threads);

// Places in a board for the values of so many threads after shuffles, and that of a thread's value.
int64_t board_size(const SplitModes& modes, int64_t threads, bool compact);

// Adds boards for the kernel's reductions to its allocations and to the inference.
void give_boards(ir::Kernel& kernel, Inference& inference);
// Elements that values are combined in.
ir::DType accumulator_type(ir::DType type);

// `board`: shared memory of values.shape[0] times `board_size`, null where none is needed; no thread uses it before all
// have come here. Afterwards threads may still read from it.
// All threads of the block come here together. Results are combined in the same order for all threads.
void combine_threads(Lowering& lowering, ThreadReduction reduction, const ir::Buffer& board, Span span,
                     Lowering::Stmts& out);

}  // namespace tilepilot::targets::cuda
