"""Residual addition and layer norm in one pass; the centred squares avoid cancellation.

ops: add layer_norm
tags: norm row-reduction residual transformer
dtype: float32
inputs: 2048x1024 2048x1024
"""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x, residual):
        return self.norm(x + residual)


def get_inputs():
    return [torch.randn(2048, 1024), torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024]


@tilelang.jit(out_idx=[-1])
def add_layer_norm(M, N, eps, block_M=4, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        R: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            r = T.alloc_fragment((block_M, N), dtype)
            mean = T.alloc_fragment((block_M,), dtype)
            scale = T.alloc_fragment((block_M,), dtype)
            T.copy(X[bx * block_M, 0], x)
            T.copy(R[bx * block_M, 0], r)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] + r[i, j]
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / N
            for i, j in T.Parallel(block_M, N):
                r[i, j] = (x[i, j] - mean[i]) * (x[i, j] - mean[i])
            T.reduce_sum(r, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + eps)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = (x[i, j] - mean[i]) * scale[i] * W[j] + B[j]
            T.copy(x, Y[bx * block_M, 0])

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x, residual):
        kernel = add_layer_norm(x.shape[0], x.shape[1], self.norm.eps)
        return kernel(x, residual, self.norm.weight, self.norm.bias)
