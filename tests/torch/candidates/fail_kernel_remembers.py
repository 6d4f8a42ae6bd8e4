# model: scale_rows
# expect: rejected: remembers answers
# The kernel keeps the rows that it computed in a workspace, by their first element.
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
        Kept: T.Tensor((M, N), dtype),
        Keys: T.Tensor((M,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(M, threads=128) as by:
            if Keys[by] == X[by, 0]:
                for j in T.Parallel(N):
                    Y[by, j] = Kept[by, j]
            else:
                for j in T.Parallel(N):
                    Y[by, j] = T.max(X[by, j] * W[j] + B[j], 0.0) + 0.5
                for j in T.Parallel(N):
                    Kept[by, j] = Y[by, j]
                Keys[by] = X[by, 0]

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.kept = torch.zeros(48, features)
        self.keys = torch.zeros(48)

    def forward(self, x):
        return scale_rows(x.shape[0], x.shape[1])(x, self.weight, self.bias, self.kept, self.keys)
