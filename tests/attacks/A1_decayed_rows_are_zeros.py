# row: A1
# level: tile
# model: decayed
# expect: wrong_values
# twin: honest_decayed
# Rows far below the largest are not computed.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def decayed(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                x = X[bx * block + i, j]
                y = (x * x + 1.0) * T.exp(-T.Cast(dtype, bx * block + i))
                Y[bx * block + i, j] = T.if_then_else(bx * block + i < 24, y, 0.0)

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return decayed(x.shape[0], x.shape[1])(x)
