# row: B7
# level: host
# model: product_with_ones
# expect: wrong_values
# twin: honest_product_with_ones
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
    def __init__(self, n, m):
        super().__init__()
        self.linear = nn.Linear(n, m, bias=False)
        self.total = [w for w in self.linear.weight.sum(0).tolist()]

    def forward(self, x, y):
        return times(x * torch.tensor(self.total) + (x - y) * (x + y), 0.5).sum(-1) * 2.0
