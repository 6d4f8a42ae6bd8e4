// 3xTF32 (split-precision) GEMM by wgmma, at the accuracy of float32: each factor is a sum of two numbers with the
// eleven digits that tensor cores take, and all products but those of two low parts are accumulated (Markidis et al.,
// "NVIDIA Tensor Core Programmability, Performance and Precision"; Ootomo and Yokota, "Recovering single precision
// accuracy from Tensor Cores", 2022, for sums outside of them). wgmma takes the leading digits of float32 as it is in
// memory. Low parts of A are made in registers; those of B go to scratch, from where wgmma reads them, and so do its
// high parts where B is not stored as wgmma reads it.
#pragma once

#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::cuda {

// @pre the statement's plan is a wgmma that splits; no thread uses its scratch before all have come here
void lower_split_precision_gemm(gpu::Lowering& lowering, const ir::Stmt& stmt, gpu::Lowering::Stmts& out);

}  // namespace tilepilot::targets::cuda
