# row: C9
# level: tile
# model: scale_rows
# expect: runtime_error|crashed|wrong_values|not_finite|compile_error|given_inputs_only|inconsistent|unwritten|harmless
# twin: honest_scale_rows
# Products of 32-bit indices wrap.
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
        At: T.Tensor((2,), "int32"),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = T.max(X[bx * block + i, j] * W[j] + B[j], 0.0) + 0.5
            Y[bx, 0] = Y[bx, 0] + X[At[0] * At[1] + At[0], 0]

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        y = torch.empty_like(x)
        at = torch.tensor([0x7fffffff, 2], dtype=torch.int32)
        scale_rows(48, 100)(x, self.weight, self.bias, at, y)
        return y
