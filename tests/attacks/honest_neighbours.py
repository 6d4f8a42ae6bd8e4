# level: tile
# model: neighbours
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def near(M, N, block=4, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            s = T.alloc_shared((block, N + 1), dtype)
            for i, j in T.Parallel(block, N + 1):
                s[i, j] = T.if_then_else(j > 0, X[bx * block + i, T.max(j - 1, 0)], 0.0)
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = s[i, j + 1] + s[i, j]

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return near(*x.shape)(x)
