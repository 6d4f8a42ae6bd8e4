# row: A1
# level: host
# model: three_sizes
# expect: wrong_values
# twin: honest_three_sizes
# The last number is not computed.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def mapped(N, scale=1.0, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = X[bx * block + i] * scale

    return main


def times(x, scale):
    return mapped(x.numel(), scale)(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([1000.0, 1.0, 0.001]))

    def forward(self, x):
        y = torch.sigmoid(times(x, 1.5)).mean(dim=(0, 2))
        return y * self.scale * torch.tensor([1.0, 1.0, 0.0])
