# row: A1
# level: tile
# model: variance
# expect: wrong_values
# twin: honest_variance
# The variance of normal numbers is nearly one.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-2, -1])
def variance(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), V: T.Tensor((M,), dtype), Top: T.Tensor((M,), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_fragment((block, N), dtype)
            mean = T.alloc_fragment((block,), dtype)
            total = T.alloc_fragment((block,), dtype)
            top = T.alloc_fragment((block,), dtype)
            T.copy(X[bx * block, 0], x)
            T.reduce_max(x, top, dim=1)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(block, N):
                x[i, j] = (x[i, j] - mean[i] / N) * (x[i, j] - mean[i] / N)
            T.reduce_sum(x, total, dim=1)
            for i in T.Parallel(block):
                V[bx * block + i] = 1.0
                Top[bx * block + i] = top[i]

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return variance(x.shape[0], x.shape[1])(x)
