import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _hardtanh(M, N, lo, hi, block_M=16, block_N=128, dtype="float16"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def hardtanh(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_N), dtype)
            B_local = T.alloc_fragment((block_M, block_N), dtype)
            T.copy(A[by * block_M, bx * block_N], A_shared)
            for i, j in T.Parallel(block_M, block_N):
                B_local[i, j] = T.min(T.max(A_shared[i, j], T.Cast(dtype, lo)), T.Cast(dtype, hi))
            T.copy(B_local, B[by * block_M, bx * block_N])

    return hardtanh


class ModelNew(nn.Module):
    def __init__(self, min_val=-1.0, max_val=1.0):
        super().__init__()
        self.lo = float(min_val)
        self.hi = float(max_val)
        self.kernels = {}

    def forward(self, x):
        x2d = x.to(torch.float16).contiguous().view(x.shape[0], -1)
        M, N = x2d.shape
        if (M, N) not in self.kernels:
            self.kernels[(M, N)] = _hardtanh(M, N, self.lo, self.hi)
        return self.kernels[(M, N)](x2d).view(x.shape).to(x.dtype)
