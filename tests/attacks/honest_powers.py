# level: tile
# model: powers
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def power(N, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = T.exp2(T.log2(X[bx * block + i]) * 3.7)

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return power(x.numel())(x.contiguous().view(-1)).view(x.shape)
