# level: tile
# model: padded_depthwise
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def taps(B, C, L, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((B, C, L), dtype), W: T.Tensor((C, 3), dtype), A: T.Tensor((C,), dtype), Y: T.Tensor((B, C, L), dtype)):
        with T.Kernel(C, B, threads=64) as (bx, by):
            for i in T.Parallel(L):
                low = T.abs(i - 2)
                high = T.if_then_else(i + 2 < L, i + 2, 2 * (L - 1) - (i + 2))
                y = A[bx] + W[bx, 0] * X[by, bx, low] + W[bx, 1] * X[by, bx, i] + W[bx, 2] * X[by, bx, high]
                Y[by, bx, i] = y * T.min(T.max(y + 3.0, 0.0), 6.0) / 6.0

    return main


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv = nn.Conv1d(n, n, 3, groups=n, dilation=2, padding=2, padding_mode="reflect")


    def forward(self, x):
        return taps(*x.shape)(x, self.conv.weight.view(-1, 3), self.conv.bias)
