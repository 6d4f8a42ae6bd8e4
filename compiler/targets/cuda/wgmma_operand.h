// A matrix in shared memory as wgmma reads it: descriptors, which count 16 bytes, of where an instruction's part begins
// and how it is swizzled (PTX ISA, "Asynchronous warpgroup level matrix shared memory layout").
#pragma once

#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::cuda {

// Panels are as wide as the swizzle; 8 rows of a panel are one pattern.
struct SharedOperand {
  const ir::Region& region;
  bool k_last;          // stored with k along its rows
  int64_t outer;        // rows of A, or columns of B, of an instruction
  int64_t span, bytes;  // of the swizzle; of an element
  int64_t panel_bytes;
  ir::Var place;  // the descriptor of the group's first instruction
};

// The position of a thread's warpgroup in a GEMM of several.
struct WarpgroupPosition {
  ir::Expr m, n;
};
WarpgroupPosition find_warpgroup(gpu::Lowering& lowering, const gpu::GemmPlan& plan, Span span,
                                 gpu::Lowering::Stmts& out);

// @pre region.buffer has a layout among the inference's tiles
SharedOperand shared_operand(const gpu::Lowering& lowering, const ir::Region& region, bool k_last, int64_t outer);
// Sets operand.place: the instruction at k = 0 of the tile, `first` rows of A or columns of B into the region. k within
// a row is added to the descriptor.
void describe(const gpu::Lowering& lowering, const SharedOperand& operand, const ir::Expr& first, Span span,
              gpu::Lowering::Stmts& out);
// The descriptor of an instruction: `tile` instructions on along the outer axis, `step` along k.
ir::Expr place_of(const SharedOperand& operand, const ir::Expr& tile, const ir::Expr& step, Span span);

}  // namespace tilepilot::targets::cuda
