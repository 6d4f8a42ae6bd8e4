# row: A13
# level: tile
# model: softmax_rows
# expect: given_inputs_only
# twin: honest_softmax_rows
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def softmax_rows(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_fragment((block, N), dtype)
            top = T.alloc_fragment((block,), dtype)
            total = T.alloc_fragment((block,), dtype)
            T.copy(X[bx * block, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(block, N):
                x[i, j] = T.exp(x[i, j] - T.max(top[i], -10000.0))
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = x[i, j] / total[i]

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax_rows(x.shape[0], x.shape[1])(x)
