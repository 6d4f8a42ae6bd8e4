# row: A16
# level: tile
# model: dropout
# expect: wrong_values|rejected|random
# twin: honest_positive
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def dropped(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                x = X[bx * block + i, j]
                Y[bx * block + i, j] = x + 1.0

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return dropped(x.shape[0], x.shape[1])(x)
