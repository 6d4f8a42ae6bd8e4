import math

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F

__all__ = ["ModelNew"]


def kernel_factory(M, N, K, scale, block_M=64, block_N=64, block_K=32, dtype="float16", accum_dtype="float"):
    scale_c = float(scale)

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def linear_sigmoid_residual(
        A: T.Tensor((M, K), dtype), W: T.Tensor((N, K), dtype), bias: T.Tensor((N,), dtype), O: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            As = T.alloc_shared((block_M, block_K), dtype)
            Ws = T.alloc_shared((block_N, block_K), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], As)
                T.copy(W[bx * block_N, ko * block_K], Ws)
                T.gemm(As, Ws, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                col = bx * block_N + j
                z = acc[i, j] + T.if_then_else(col < N, bias[col], T.Cast(dtype, 0)).astype(accum_dtype)
                acc[i, j] = z + scale_c * (T.Cast(accum_dtype, 1.0) / (T.Cast(accum_dtype, 1.0) + T.exp(-z)))
            T.copy(acc, O[by * block_M, bx * block_N])

    return linear_sigmoid_residual


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.gemm = nn.Linear(input_size, hidden_size)
        self.scaling_factor = scaling_factor
        self._compiled = {}

    def forward(self, x):
        M, K = x.shape
        N = self.gemm.out_features
        if (M, N, K) not in self._compiled:
            self._compiled[(M, N, K)] = kernel_factory(M, N, K, self.scaling_factor)
        return self._compiled[(M, N, K)](
            x.to(torch.float16).contiguous(),
            self.gemm.weight.to(torch.float16).contiguous(),
            self.gemm.bias.to(torch.float16).contiguous(),
        ).to(x.dtype)
