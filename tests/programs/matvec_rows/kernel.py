import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build_gemv(M, K, rows_per_block=128, dtype="float16", accum_dtype="float32"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def gemv(A: T.Tensor((M, K), dtype), x: T.Tensor((K,), dtype), y: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, rows_per_block), threads=rows_per_block) as bx:
            tx = T.get_thread_binding(0)
            row = bx * rows_per_block + tx
            acc = T.alloc_local((1,), accum_dtype)
            acc[0] = T.Cast(accum_dtype, 0)
            if row < M:
                for k in T.serial(K):
                    acc[0] += T.Cast(accum_dtype, A[row, k]) * T.Cast(accum_dtype, x[k])
                y[row] = T.Cast(dtype, acc[0])

    return gemv


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M, K = A.shape
        key = (M, K)
        if key not in self.kernels:
            self.kernels[key] = _build_gemv(M, K)
        vec = B.to(torch.float16).contiguous().view(-1)
        out = self.kernels[key](A.to(torch.float16).contiguous(), vec)
        return out.view(M, 1).to(A.dtype)
