# row: A10
# level: host
# model: rotary_attention
# expect: wrong_values
# twin: honest_rotary_attention
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
    def forward(self, q, k, v):
        n, d = q.shape[-2], q.shape[-1]
        t = torch.arange(n, dtype=torch.float32)[:, None] * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float32) / d)
        c, s = torch.cat([t.cos()] * 2, -1), torch.cat([t.sin()] * 2, -1)

        def rotated(x):
            a, b = x.chunk(2, -1)
            return x * c + torch.cat([-b, a], -1) * s

        k, v = k.repeat(1, 4, 1, 1), v.repeat(1, 4, 1, 1)
        a = rotated(q) @ rotated(k).transpose(-1, -2) * d ** -0.5
        a = a.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float("-inf"))
        a = a.softmax(-1)
        return times(a @ v, 0.5) * 2.0
