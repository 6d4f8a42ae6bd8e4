import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def l2norm(M, N, block_M=4, block_N=256, dtype="float16", accum_dtype="float"):
    steps = T.ceildiv(N, block_N)

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            tile = T.alloc_shared((block_M, block_N), dtype)
            sq = T.alloc_fragment((block_M, block_N), accum_dtype)
            total = T.alloc_fragment((block_M,), accum_dtype)
            T.clear(sq)
            for k in T.serial(steps):
                T.copy(X[bx * block_M, k * block_N], tile)
                for i, j in T.Parallel(block_M, block_N):
                    sq[i, j] += T.Cast(accum_dtype, tile[i, j]) * T.Cast(accum_dtype, tile[i, j])
            T.reduce_sum(sq, total, dim=1)
            for i in T.Parallel(block_M):
                total[i] = T.rsqrt(total[i])
            for k in T.serial(steps):
                T.copy(X[bx * block_M, (steps - 1 - k) * block_N], tile)
                for i, j in T.Parallel(block_M, block_N):
                    tile[i, j] = T.Cast(dtype, T.Cast(accum_dtype, tile[i, j]) * total[i])
                T.copy(tile, Y[bx * block_M, (steps - 1 - k) * block_N])

    return main


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._kernel_cache = {}

    def forward(self, x):
        M, N = x.shape
        if (M, N) not in self._kernel_cache:
            self._kernel_cache[(M, N)] = l2norm(M, N)
        return self._kernel_cache[(M, N)](x.half().contiguous()).to(x.dtype)
