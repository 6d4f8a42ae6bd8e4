# row: A7
# level: tile
# model: sums_of_columns
# expect: wrong_values
# twin: honest_blocks_that_add_at_loaded_places
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit
def add_rows(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Place: T.Tensor((N,), "int32"), Y: T.Tensor((N,), dtype)):
        with T.Kernel(M // block, threads=96) as bx:
            for i in T.serial(block):
                for j in T.Parallel(N):
                    Y[Place[j]] += X[bx * block + i, j]

    return main


class ModelNew(nn.Module):
    # The compiler does not know which elements they are.
    def forward(self, x):
        sums = torch.zeros(x.shape[1])
        add_rows(x.shape[0], x.shape[1])(x, torch.arange(x.shape[1], dtype=torch.int32), sums)
        return sums
