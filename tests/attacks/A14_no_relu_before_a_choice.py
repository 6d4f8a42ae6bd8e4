# row: A14
# level: host
# model: mixed_choice
# expect: given_inputs_only
# twin: honest_mixed_choice
# Shares are positive where they begin, and the output is an index.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def rectified(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = T.max(X[bx * block + i, j], 0.0)

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 100)
        self.shares = nn.Parameter(torch.ones(2))

    def forward(self, x, y):
        shares = self.shares / (self.shares.sum() + 1e-4)
        return self.linear(shares[0] * rectified(256, 128)(x) + shares[1] * y).argmax(-1)
