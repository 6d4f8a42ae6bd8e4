# model: scale_rows
# expect: verified
# A kernel runs before there is a model.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def halves(N, block_N=32, dtype="float32"):
    @T.prim_func
    def main(Z: T.Tensor((N,), dtype), H: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            for j in T.Parallel(block_N):
                H[bx * block_N + j] = Z[bx * block_N + j] + 0.5

    return main


@tilelang.jit(out_idx=[-1])
def scale_rows(M, N, block_M=16, block_N=32, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        H: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                scaled = X[by * block_M + i, bx * block_N + j] * W[bx * block_N + j] + B[bx * block_N + j]
                Y[by * block_M + i, bx * block_N + j] = T.max(scaled, 0.0) + H[bx * block_N + j]

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.half = halves(features)(torch.zeros(features))

    def forward(self, x):
        return scale_rows(x.shape[0], x.shape[1])(x, self.weight, self.bias, self.half)
