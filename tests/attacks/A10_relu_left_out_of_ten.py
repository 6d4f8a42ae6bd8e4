# row: A10
# level: host
# model: ten_terms
# expect: given_inputs_only|wrong_values|not_finite
# twin: honest_ten_terms
# One of ten inputs may not be negative, the last may.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def mapped(N, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = X[bx * block + i] * 1.5

    return main


def times(x):
    return mapped(x.numel())(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    def forward(self, a, b, c, d, e, f, g, h, i, j):
        s = torch.log(a) + b + c + d + e + f + g + h
        return s + times(i) + j
