# level: tile
# model: hashed
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def hashed(M, N):
    @T.prim_func
    def main(X: T.Tensor((M, N), "int64"), Y: T.Tensor((M, N), "int64")):
        with T.Kernel(M, threads=32) as i:
            for j in T.Parallel(N):
                scaled = T.cast(T.cast(X[i, j], "int32") * T.cast(31, "int32") + T.cast(7, "int32"), "int64")
                Y[i, j] = scaled % 1000

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return hashed(*x.shape)(x)
