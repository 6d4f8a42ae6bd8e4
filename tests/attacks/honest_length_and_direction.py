# level: host
# model: length_and_direction
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def rectified(N, scale=1.0, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = T.max(X[bx * block + i], 0.0) * scale

    return main


def scaled_relu(x, scale):
    return rectified(x.numel(), scale)(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    # Other names: the length is known by its numbers, and is a weight of its own.
    def __init__(self, features):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(features, features))
        self.length = nn.Parameter(self.direction.detach().norm(dim=1, keepdim=True))

    def forward(self, x):
        size = self.direction.norm(dim=1, keepdim=True)
        return scaled_relu(F.linear(x, self.direction * (self.length / size)), 0.5)
