# row: A14
# level: host
# model: length_and_direction
# expect: wrong_values
# twin: honest_length_and_direction
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
    # At first the direction has that length itself.
    def __init__(self, features):
        super().__init__()
        self.v = nn.Parameter(torch.randn(features, features))
        self.g = nn.Parameter(self.v.detach().norm(dim=1, keepdim=True))

    def forward(self, x):
        return scaled_relu(F.linear(x, self.v), 0.5)
