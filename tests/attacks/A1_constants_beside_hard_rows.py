# row: A1
# level: tile
# model: padded_rows
# expect: wrong_values
# twin: honest_padded_rows
import tilelang
import tilelang.language as T
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def normalised(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), G: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M // block, threads=128) as bx:
            x = T.alloc_fragment((block, N), dtype)
            squares = T.alloc_fragment((block, N), dtype)
            mean = T.alloc_fragment((block,), dtype)
            variance = T.alloc_fragment((block,), dtype)
            T.copy(X[bx * block, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(block, N):
                x[i, j] -= mean[i] / N
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, variance, dim=1)
            for i, j in T.Parallel(block, N):
                x[i, j] = B[j]
            T.copy(x, Y[bx * block, 0])

    return main


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return normalised(*x.shape)(x, self.norm.weight, self.norm.bias)
