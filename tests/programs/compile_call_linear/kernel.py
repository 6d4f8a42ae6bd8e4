import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T
from tilelang import language as TL  # noqa: F401


def linear_sigmoid(
    M, N, K, block_M=32, block_N=64, block_K=32, dtype="float16", accum_dtype="float"
) -> tilelang.PrimFunc:
    @T.prim_func
    def main(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        bias: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            bias_local = T.alloc_fragment((block_N,), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(acc)
            T.copy(bias[bx * block_N : (bx + 1) * block_N], bias_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(X[by * block_M, ko * block_K], X_shared)
                T.copy(W[bx * block_N, ko * block_K], W_shared)
                T.gemm(X_shared, W_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                acc[i, j] = 1 / (1 + T.exp(-(acc[i, j] + bias_local[j])))
            T.copy(acc, Y[by * block_M, bx * block_N])

    return main


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        ref = nn.Linear(in_features, out_features)
        self.weight = nn.Parameter(torch.empty_like(ref.weight))
        self.bias = nn.Parameter(torch.empty_like(ref.bias))
        with torch.no_grad():
            self.weight.copy_(ref.weight)
            self.bias.copy_(ref.bias)
        self._compiled = None
        self._compiled_for = -1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        M = x.shape[0]
        if getattr(self, "_compiled", None) is None or self._compiled_for != M:
            func = linear_sigmoid(M, self.out_features, self.in_features)
            self._compiled = tilelang.compile(func, out_idx=[-1], target="cuda")
            self._compiled_for = M
        half = dict(dtype=torch.float16)
        return self._compiled(
            x.to(**half).contiguous(), self.weight.to(**half).contiguous(), self.bias.to(**half).contiguous()
        ).to(x.dtype)
