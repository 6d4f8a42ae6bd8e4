# level: host
# model: far_bounds_of_a_weight
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def doubled(N, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = X[bx * block + i] * 2.0

    return main


def twice(x):
    return doubled(x.numel())(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((128,), 0.1))

    def forward(self, x):
        return twice(x / self.scale.clamp(0.001, 1000.0))
