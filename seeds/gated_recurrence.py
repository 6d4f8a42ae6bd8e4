"""A gated linear recurrence over time with a causal depthwise convolution before it, a block for each range of channels.

ops: transpose conv1d slice transpose silu mul mul add mul mul add mul mul add mul mul add mul mul add mul mul add stack mul
tags: recurrence scan convolution depthwise activation state
dtype: float32
inputs: 4x256x256 4x256x256
"""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, width, padding=width - 1, groups=channels)
        self.decay = nn.Parameter(torch.randn(channels))

    def forward(self, x, z):
        u = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        keep = torch.sigmoid(self.decay)
        state = torch.zeros_like(x[:, 0])
        states = []
        for t in range(x.shape[1]):
            state = keep * state + (1 - keep) * u[:, t]
            states.append(state)
        return torch.stack(states, dim=1) * z


def get_inputs():
    return [torch.randn(4, 256, 256), torch.randn(4, 256, 256)]


def get_init_inputs():
    return [256, 4]


@tilelang.jit(out_idx=[-1])
def recurrence(B, N, C, K, block_C=64, dtype="float32"):
    """Time is the loop of a block, whose state stays on the chip; no other block needs its channels."""

    @T.prim_func
    def main(
        X: T.Tensor((B, N, C), dtype),
        Z: T.Tensor((B, N, C), dtype),
        W: T.Tensor((C, K), dtype),
        bias: T.Tensor((C,), dtype),
        decay: T.Tensor((C,), dtype),
        Y: T.Tensor((B, N, C), dtype),
    ):
        with T.Kernel(T.ceildiv(C, block_C), B, threads=block_C) as (bc, bb):
            w = T.alloc_shared((K, block_C), dtype)
            state = T.alloc_fragment((block_C,), dtype)
            T.clear(state)
            for k, c in T.Parallel(K, block_C):
                w[k, c] = W[bc * block_C + c, k]
            for t in T.serial(N):
                for c in T.Parallel(block_C):
                    u = T.alloc_var(dtype)
                    u = bias[bc * block_C + c]
                    for k in T.unroll(K):
                        # Rows before the first are zeros.
                        u += w[k, c] * T.if_then_else(t + k >= K - 1, X[bb, t + k - (K - 1), bc * block_C + c], 0.0)
                    keep = T.sigmoid(decay[bc * block_C + c])
                    state[c] = keep * state[c] + (1 - keep) * (u * T.sigmoid(u))
                    Y[bb, t, bc * block_C + c] = state[c] * Z[bb, t, bc * block_C + c]

    return main


class ModelNew(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, width, padding=width - 1, groups=channels)
        self.decay = nn.Parameter(torch.randn(channels))

    def forward(self, x, z):
        weight = self.conv.weight
        kernel = recurrence(x.shape[0], x.shape[1], x.shape[2], weight.shape[2])
        return kernel(x, z, weight.view(weight.shape[0], -1), self.conv.bias, self.decay)
