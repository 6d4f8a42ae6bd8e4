# model: strided_inputs
# expect: verified: "outcome": "verified"
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def apply(M, N, block_M=16, block_N=32, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype), Z: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                Z[by * block_M + i, bx * block_N + j] = (
                    X[by * block_M + i, bx * block_N + j] * 2.0 + Y[by * block_M + i, bx * block_N + j]
                )

    return main


class ModelNew(nn.Module):
    def forward(self, x, y):
        assert x.stride() == (1, 48) and y.stride() == (0, 1)
        return apply(x.shape[0], x.shape[1])(x.contiguous(), y.contiguous())
