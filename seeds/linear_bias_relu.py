"""A linear layer with bias and ReLU applied while the tile is on chip.

ops: linear relu
tags: matmul product epilogue activation
dtype: float32
inputs: 1024x512
"""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(1024, 512)]


def get_init_inputs():
    return [512, 1024]


@tilelang.jit(out_idx=[-1])
def linear_relu(M, N, K, block_M=128, block_N=128, block_K=128, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_shared((block_M, block_K), dtype)
            w = T.alloc_shared((block_N, block_K), dtype)
            y = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(y)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(X[by * block_M, k * block_K], x)
                T.copy(W[bx * block_N, k * block_K], w)
                T.gemm(x, w, y, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                y[i, j] = T.max(y[i, j] + B[bx * block_N + j], 0.0)
            T.copy(y, Y[by * block_M, bx * block_N])

    return main


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        weight = self.linear.weight
        kernel = linear_relu(x.shape[0], weight.shape[0], weight.shape[1])
        return kernel(x, weight, self.linear.bias)
