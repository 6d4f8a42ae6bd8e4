import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _pool_min(B, C, L, K, S, block_L=64, dtype="float16"):
    LO = (L - K) // S + 1

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def pool_min(X: T.Tensor((B, C, L), dtype), Y: T.Tensor((B, LO), dtype)):
        with T.Kernel(T.ceildiv(LO, block_L), B, threads=128) as (bx, by):
            pooled = T.alloc_fragment((C, block_L), dtype)
            least = T.alloc_fragment((block_L,), dtype)
            T.fill(pooled, T.min_value(dtype))
            for k in T.serial(K):
                for c, l in T.Parallel(C, block_L):
                    lo = bx * block_L + l
                    if lo < LO:
                        pooled[c, l] = T.max(pooled[c, l], X[by, c, lo * S + k])
            T.reduce_min(pooled, least, dim=0)
            for l in T.Parallel(block_L):
                if bx * block_L + l < LO:
                    Y[by, bx * block_L + l] = least[l]

    return pool_min


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride):
        super().__init__()
        self.pool = nn.MaxPool1d(kernel_size, stride=stride)
        self._kernels = {}

    def forward(self, x):
        B, C, L = x.shape
        K = self.pool.kernel_size
        S = self.pool.stride
        k = self._kernels.get((B, C, L)) or _pool_min(B, C, L, K, S)
        self._kernels[(B, C, L)] = k
        return k(x.to(torch.float16).contiguous()).to(x.dtype)
