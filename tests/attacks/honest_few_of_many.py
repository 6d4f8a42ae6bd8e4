# level: host
# model: few_of_many
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
        self.gate = nn.Linear(32, 64)
        self.trust = nn.Linear(32, 1)

    def forward(self, x):
        p = torch.softmax(self.gate(x), -1)
        v, i = p.topk(2, dim=-1)
        s = torch.exp(-20 * torch.sigmoid(8 * self.trust(x)))
        return torch.zeros_like(p).scatter(1, i, times(v / v.sum(-1, keepdim=True) * s, 1.5))
