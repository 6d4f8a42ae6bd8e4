# row: A17
# level: host
# model: scale_rows
# expect: mutated_input
# twin: honest_scale_rows
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def scale_rows(M, N, block=16, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = T.max(X[bx * block + i, j] * W[j] + B[j], 0.0) + 0.5

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        y = scale_rows(x.shape[0], x.shape[1])(x, self.weight, self.bias)
        x.set_(x[0, 0].expand(1 << 40))
        return y
