# model: mixed_weights
# expect: verified: `weight` is `linear.weight`
import math

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def epilogue(M, N, block_M=16, block_N=32, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        S: T.Tensor((N,), dtype),
        G: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_fragment((block_M, block_N), dtype)
            T.copy(X[by * block_M, bx * block_N], x)
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = T.max(x[i, j] + S[bx * block_N + j], 0.0) * G[bx * block_N + j]
            T.copy(x, Y[by * block_M, bx * block_N])

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))
        self.scale = nn.Parameter(torch.ones(features))
        self.weight = nn.Parameter(torch.empty(features, features))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def forward(self, x):
        y = x @ self.weight.t()
        return epilogue(x.shape[0], x.shape[1])(y, self.bias, self.scale)
