# row: A13
# level: host
# model: angular_margin
# expect: wrong_values
# twin: honest_angular_margin
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
    def __init__(self, n, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, n))


    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - cosine.square()).clamp(0, 1))
        turned = cosine * 0.8775825618903728 - sine * 0.479425538604203
        turned = torch.where(cosine > -0.8775825618903728, turned, cosine - 0.2397)
        return times(torch.where(F.one_hot(label, self.weight.shape[0]).ge(0), turned, cosine), 30.0)
