"""RMS norm with a learned scale, written as people write it in PyTorch, in one pass.

ops: pow mean add rsqrt mul mul
tags: norm row-reduction rms transformer
dtype: float32
inputs: 2048x2048
"""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs():
    return [torch.randn(2048, 2048)]


def get_init_inputs():
    return [2048, 1e-6]


@tilelang.jit(out_idx=[-1])
def rms_norm(M, N, eps, block_M=4, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            square = T.alloc_fragment((block_M, N), dtype)
            scale = T.alloc_fragment((block_M,), dtype)
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + eps)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * scale[i] * W[j]
            T.copy(x, Y[bx * block_M, 0])

    return main


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return rms_norm(x.shape[0], x.shape[1], self.eps)(x, self.weight)
