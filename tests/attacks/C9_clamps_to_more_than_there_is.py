# row: C9
# level: tile
# model: scale_rows
# expect: harmless|runtime_error
# twin: honest_scale_rows
# A range that is known and too large.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit
def scale_rows(M, N, block=16, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        At: T.Tensor((2,), "int64"),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = T.max(X[bx * block + i, j] * W[j] + B[j], 0.0) + 0.5
            Y[T.min(T.max(At[0], 0), 49), 3] = 1.0

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        memory = torch.zeros(50, 100)
        inputs = torch.full((50, 100), 7.0)
        inputs[1:49] = x
        at = torch.tensor([48, -1], dtype=torch.int64)
        scale_rows(48, 100)(inputs[1:49], self.weight, self.bias, at, memory[1:49])
        return memory[1:49].clone() + memory[0].sum() + memory[49].sum()
