"""The sum over the outputs of a linear layer is one matrix-vector product with the column sums of the weight.

ops: linear sum
tags: matmul product reduction algebra matvec
dtype: float32
inputs: 1024x1024
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
        return self.linear(x).sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_init_inputs():
    return [1024, 1024]


@tilelang.jit(out_idx=[-1])
def column_sums(M, N, block_N=64, block_M=64, dtype="float32"):
    @T.prim_func
    def main(W: T.Tensor((M, N), dtype), S: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            w = T.alloc_fragment((block_M, block_N), dtype)
            s = T.alloc_fragment((block_N,), dtype)
            T.clear(s)
            for k in T.Pipelined(T.ceildiv(M, block_M), num_stages=2):
                T.copy(W[k * block_M, bx * block_N], w)
                T.reduce_sum(w, s, dim=0, clear=False)
            T.copy(s, S[bx * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def matvec_add(M, N, block_M=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), V: T.Tensor((N,), dtype), C: T.Tensor((1,), dtype), Y: T.Tensor((M, 1), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            y = T.alloc_fragment((block_M,), dtype)
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * V[j]
            T.reduce_sum(x, y, dim=1)
            for i in T.Parallel(block_M):
                if bx * block_M + i < M:
                    Y[bx * block_M + i, 0] = y[i] + C[0]

    return main


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        weight = self.linear.weight
        sums = column_sums(weight.shape[0], weight.shape[1])(weight)
        return matvec_add(x.shape[0], x.shape[1])(x, sums, self.linear.bias.sum().reshape(1))
