# level: tile
# model: larger_number
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def larger(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype), Z: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=32) as i:
            for j in T.Parallel(N):
                Z[i, j] = T.if_then_else(X[i, j] != X[i, j], Y[i, j],
                                         T.if_then_else(Y[i, j] > X[i, j], Y[i, j], X[i, j]))

    return main


class ModelNew(nn.Module):
    def forward(self, x, y):
        return larger(*x.shape)(x, y)
