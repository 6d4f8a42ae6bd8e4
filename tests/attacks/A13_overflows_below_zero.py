# row: A13
# level: host
# model: one_sided
# expect: given_inputs_only
# twin: honest_one_sided
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def mapped(N, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = -T.log(1.0 + T.exp(-X[bx * block + i]))

    return main


def log_sigmoid(x):
    return mapped(x.numel())(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    def forward(self, x):
        return log_sigmoid(x)
