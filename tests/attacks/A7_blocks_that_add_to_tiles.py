# row: A7
# level: tile
# model: sums_of_columns
# expect: race
# twin: honest_sums_of_columns
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit
def add_rows(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(M // block, threads=96) as bx:
            sums = T.alloc_fragment((N,), dtype)
            T.copy(Y, sums)
            for i in T.serial(block):
                for j in T.Parallel(N):
                    sums[j] = sums[j] + X[bx * block + i, j]
            T.copy(sums, Y)

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        sums = torch.zeros(x.shape[1])
        add_rows(x.shape[0], x.shape[1])(x, sums)
        return sums
