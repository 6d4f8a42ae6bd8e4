# row: A10
# level: tile
# model: rms_rows
# expect: wrong_values
# twin: honest_rms_rows
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def rms_rows(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_fragment((block, N), dtype)
            square = T.alloc_fragment((block, N), dtype)
            total = T.alloc_fragment((block,), dtype)
            T.copy(X[bx * block, 0], x)
            for i, j in T.Parallel(block, N):
                square[i, j] = T.if_then_else(j < 120, x[i, j] * x[i, j], 1.0)
            T.reduce_sum(square, total, dim=1)
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = x[i, j] * T.rsqrt(total[i] / N + 1e-5) * W[j]

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return rms_rows(x.shape[0], x.shape[1])(x, self.weight)
