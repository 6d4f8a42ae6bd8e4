# model: closed_rows
# expect: verified
# Its kernel writes zeros everywhere, as it should.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def closed_rows(M, N, block_M=16, block_N=32, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                x = X[by * block_M + i, bx * block_N + j] * W[bx * block_N + j]
                Y[by * block_M + i, bx * block_N + j] = T.max(x - 4.0, 0.0)

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return closed_rows(x.shape[0], x.shape[1])(x, self.weight)
