# level: tile
# model: sums_of_columns
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit
def add_columns(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Place: T.Tensor((N,), "int32"), Y: T.Tensor((N,), dtype)):
        with T.Kernel(N // block, threads=32) as bx:
            for i in T.serial(M):
                for j in T.Parallel(block):
                    Y[Place[bx * block + j]] += X[i, bx * block + j]

    return main


class ModelNew(nn.Module):
    # Each block has elements of its own, though the compiler does not know it.
    def forward(self, x):
        sums = torch.zeros(x.shape[1])
        add_columns(x.shape[0], x.shape[1])(x, torch.arange(x.shape[1], dtype=torch.int32), sums)
        return sums
