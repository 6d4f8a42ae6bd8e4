# row: A10
# level: host
# model: shifted_windows
# expect: wrong_values
# twin: honest_shifted_windows
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
    def __init__(self, heads):
        super().__init__()
        self.table = nn.Parameter(torch.randn(15, heads))


    def forward(self, x):
        b, n, c = x.shape
        w, h = 8, self.table.shape[1]
        y = x.roll(-4, 1).view(b, n // w, w, h, c // h).transpose(2, 3)
        i = torch.arange(w)
        bias = self.table[i[None, :] - i[:, None] + w - 1].permute(2, 0, 1)
        s = y @ y.transpose(-1, -2) * (c // h) ** -0.5 + bias
        last = torch.arange(n // w)[:, None, None] == n // w - 1
        apart = (i[:, None] < 4) != (i[None, :] < 4)
        s = s.masked_fill((last & apart)[None, :, None], -100.0)
        return times((s.softmax(-1) @ y).transpose(2, 3).reshape(b, n, c).roll(4, 1), 0.5) * 2.0
