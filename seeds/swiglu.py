"""SwiGLU: one half of the features, through swish, gates the other.

ops: chunk silu mul
tags: elementwise activation gate transformer
dtype: float32
inputs: 1024x4096
"""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs():
    return [torch.randn(1024, 4096)]


def get_init_inputs():
    return []


@tilelang.jit(out_idx=[-1])
def swiglu(M, N, block_M=4, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, 2 * N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            gate = T.alloc_fragment((block_M, N), dtype)
            up = T.alloc_fragment((block_M, N), dtype)
            T.copy(X[bx * block_M, 0], gate)
            T.copy(X[bx * block_M, N], up)
            for i, j in T.Parallel(block_M, N):
                gate[i, j] = gate[i, j] * T.sigmoid(gate[i, j]) * up[i, j]
            T.copy(gate, Y[bx * block_M, 0])

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return swiglu(x.shape[0], x.shape[1] // 2)(x)
