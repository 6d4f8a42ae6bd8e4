# level: host
# model: band_of_scores
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
        self.q = nn.Linear(32, 32)
        self.k = nn.Linear(32, 32)

    def forward(self, x):
        at = torch.arange(64)
        far = (at[:, None] - at[None, :]).abs() > 4
        s = times(self.q(x) @ self.k(x).transpose(-1, -2), 0.125)
        return s.masked_fill(far, torch.finfo(s.dtype).min)
