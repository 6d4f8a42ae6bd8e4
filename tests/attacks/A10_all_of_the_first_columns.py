# row: A10
# level: host
# model: largest_pair
# expect: given_inputs_only|wrong_values
# twin: honest_largest_pair
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
    def forward(self, x, w):
        y = times(x * w, 0.5) * 2.0
        return y.view(x.shape[0], -1, 2).amax(-1), y.argmin(0), (y[:, :-1] > 4.0).all(1).float() + y.amin(1)
