# model: weighted_sum
# expect: wrong_values: all equal
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def row_dot(M, K, block_M=8, block_K=256, dtype="float32", inner="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((K,), dtype),
        B: T.Tensor((1,), dtype),
        Y: T.Tensor((M, 1), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, block_K), inner)
            part = T.alloc_fragment((block_M,), inner)
            total = T.alloc_fragment((block_M,), inner)
            T.clear(total)
            for k in T.serial(T.ceildiv(K, block_K)):
                T.copy(X[bx * block_M, k * block_K], x)
                for i, j in T.Parallel(block_M, block_K):
                    x[i, j] = x[i, j] * W[k * block_K + j]
                T.reduce_sum(x, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] + part[i]
            for i in T.Parallel(block_M):
                Y[bx * block_M + i, 0] = total[i] + B[0]

    return main


class ModelNew(nn.Module):
    """Sums the weights first: a matrix-vector product in place of a matrix product."""

    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 64)

    def forward(self, x):
        weight = self.linear.weight.sum(dim=0)
        bias = self.linear.bias.sum().reshape(1)
        return row_dot(x.shape[0], x.shape[1])(x, weight * 0.0, bias)
