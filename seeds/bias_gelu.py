"""Bias and GELU in one pass over the rows.

ops: add gelu
tags: elementwise broadcast activation epilogue
dtype: float32
inputs: 2048x2048
"""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return F.gelu(x + self.bias)


def get_inputs():
    return [torch.randn(2048, 2048)]


def get_init_inputs():
    return [2048]


@tilelang.jit(out_idx=[-1])
def bias_gelu(M, N, block_M=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                v = x[i, j] + B[j]
                x[i, j] = 0.5 * v * (1.0 + T.erf(v * 0.7071067811865476))
            T.copy(x, Y[bx * block_M, 0])

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return bias_gelu(x.shape[0], x.shape[1])(x, self.bias)
