# row: A1
# level: host
# model: decaying_triangle
# expect: wrong_values
# twin: honest_decaying_triangle
# Rows most of which is zero anyway.
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
    def forward(self, a, b):
        sizes = torch.linspace(-20, 0, a.shape[0]).exp()[:, None]
        t = torch.tril(torch.tanh(a) @ torch.tanh(b).t())
        t[:17] = 0
        return times(t * sizes, 1.5)
