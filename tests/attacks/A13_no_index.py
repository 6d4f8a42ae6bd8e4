# row: A13
# level: tile
# model: gathered
# expect: given_inputs_only
# twin: honest_gathered
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def gathered(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        Mask: T.Tensor((M, N), "bool"),
        At: T.Tensor((M,), "int64"),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                row = bx * block + i
                Y[bx * block + i, j] = T.if_then_else(Mask[row, j], X[row, j] * 2.0, 0.0)

    return main


class ModelNew(nn.Module):
    def forward(self, x, mask, index):
        return gathered(x.shape[0], x.shape[1])(x, mask, index)
