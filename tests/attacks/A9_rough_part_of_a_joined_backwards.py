# row: A9
# level: host
# model: joined_backwards
# expect: wrong_values
# twin: honest_joined_backwards
# The small numbers are of low precision.
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
        self.big = nn.Linear(32, 16)
        self.small = nn.Linear(32, 16)

    def forward(self, x):
        a = times(torch.sigmoid(self.big(x)), 1500.0)
        b = torch.sigmoid(self.small(x)).bfloat16().float() * 1e-4
        return torch.cat([a.flatten(), b.flatten()]).flip(0)
