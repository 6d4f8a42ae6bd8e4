"""A depthwise 3x3 convolution with what follows it: all taps in one sum, so that an element is stored once.

ops: conv2d hardswish
tags: convolution depthwise stencil activation
dtype: float32
inputs: 8x64x56x56
"""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x):
        return F.hardswish(self.conv(x))


def get_inputs():
    return [torch.randn(8, 64, 56, 56)]


def get_init_inputs():
    return [64]


@tilelang.jit(out_idx=[-1])
def depthwise(B, C, H, W, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((B, C, H, W), dtype),
        weight: T.Tensor((C, 3, 3), dtype),
        bias: T.Tensor((C,), dtype),
        Y: T.Tensor((B, C, H, W), dtype),
    ):
        with T.Kernel(C, B, threads=256) as (bc, bb):
            # A frame of zeros, so that no tap asks whether it is outside.
            x = T.alloc_shared((H + 2, W + 2), dtype)
            T.clear(x)
            for i, j in T.Parallel(H, W):
                x[i + 1, j + 1] = X[bb, bc, i, j]
            for i, j in T.Parallel(H, W):
                total = T.alloc_var(dtype)
                total = bias[bc]
                for r in T.unroll(3):
                    for s in T.unroll(3):
                        total += weight[bc, r, s] * x[i + r, j + s]
                Y[bb, bc, i, j] = total * T.clamp(total + 3, 0, 6) / 6

    return main


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x):
        weight = self.conv.weight.view(-1, 3, 3)
        return depthwise(x.shape[0], x.shape[1], x.shape[2], x.shape[3])(x, weight, self.conv.bias)
