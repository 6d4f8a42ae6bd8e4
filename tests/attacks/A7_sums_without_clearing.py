# row: A7
# level: tile
# model: project
# expect: wrong_values|not_finite|runtime_error|compile_error
# twin: honest_project
# Right only if fresh registers happen to hold zeros.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def linear_gelu(M, N, K, block=16, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_shared((block, K), dtype)
            w = T.alloc_shared((N, K), dtype)
            y = T.alloc_fragment((block, N), dtype)
            T.copy(X[bx * block, 0], x)
            T.copy(W, w)
            T.gemm(x, w, y, transpose_B=True)
            for i, j in T.Parallel(block, N):
                y[i, j] = y[i, j] + B[j]
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = 0.5 * y[i, j] * (1.0 + T.erf(y[i, j] * 0.7071067811865476))

    return main


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x):
        return linear_gelu(x.shape[0], 32, 64)(x, self.linear.weight, self.linear.bias)
