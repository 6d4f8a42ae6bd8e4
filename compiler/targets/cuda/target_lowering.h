// What CUDA lowers to instructions of its own: tensor cores, TMA, fences and waits.
#pragma once

#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::cuda {

void lower_gemm(gpu::Lowering& lowering, const ir::Stmt& stmt, gpu::Lowering::Stmts& out);
void lower_wgmma(gpu::Lowering& lowering, const ir::Stmt& stmt, gpu::Lowering::Stmts& out);
void lower_bulk_load(gpu::Lowering& lowering, const ir::Stmt& stmt, gpu::Lowering::Stmts& out);
void lower_bulk_store(gpu::Lowering& lowering, const ir::Stmt& stmt, gpu::Lowering::Stmts& out);
// Fences, and waits for copies and wgmma.
void lower_async(gpu::Lowering& lowering, const ir::Stmt& stmt, gpu::Lowering::Stmts& out);

// ldmatrix, and mma of registers. @pre their buffers are in their places
void lower_matrix(gpu::Lowering& lowering, const ir::Stmt& stmt, gpu::Lowering::Stmts& out);

inline constexpr gpu::TargetLowering kLowering{lower_gemm, lower_bulk_load, lower_bulk_store, lower_async,
                                               lower_matrix};

}  // namespace tilepilot::targets::cuda
