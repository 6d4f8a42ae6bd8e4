# row: A7
# level: tile
# model: neighbours
# expect: wrong_values
# twin: honest_neighbours
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
            s = T.alloc_shared((block, N), dtype)
            for i, j in T.Parallel(block, N):
                s[i, j] = X[bx * block + i, j]
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = s[i, j] + s[i, (j + N - 1) % N]

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return near(*x.shape)(x)
