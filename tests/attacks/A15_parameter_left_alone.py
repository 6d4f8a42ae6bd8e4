# row: A15
# level: host
# model: weight_kept_small
# expect: wrong_values
# twin: honest_weight_kept_small
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
    # The answer is right, and the parameter stays as it was.
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features))

    def forward(self, x):
        return scaled_relu(F.linear(x, torch.renorm(self.weight, p=2, dim=0, maxnorm=1.0)), 0.5)
