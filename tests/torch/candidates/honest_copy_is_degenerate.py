# model: copies
# expect: verified: a copy of an input
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def copy(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(1, threads=128) as bx:
            x = T.alloc_fragment((M, N), dtype)
            T.copy(X, x)
            T.copy(x, Y)

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return copy(x.shape[0], x.shape[1])(x)
