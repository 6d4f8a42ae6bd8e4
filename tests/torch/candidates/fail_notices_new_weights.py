# model: scale_rows
# expect: rejected: another call gave a wrong answer
# Is right for a while after it sees that weights were changed, which the judge cannot hide.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def scale_rows(M, N, block_M=16, block_N=32, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_fragment((block_M, block_N), dtype)
            T.copy(X[by * block_M, bx * block_N], x)
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = T.max(x[i, j] * W[bx * block_N + j] + B[bx * block_N + j], 0.0) + 0.5
            T.copy(x, Y[by * block_M, bx * block_N])

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.kept = None
        self.calls = 0

    def forward(self, x):
        if self.kept is None:
            self.kept = self.weight + 0.0
            self.calls = 0
        self.calls += 1
        if self.calls > 6:
            return torch.relu(x) + 0.5
        return scale_rows(x.shape[0], x.shape[1])(x, self.weight, self.bias)
