# row: A13
# level: host
# model: stable_order
# expect: given_inputs_only|wrong_values
# twin: honest_stable_order
# A stable order keeps equal elements as they were; this one turns them round.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def rectified(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = T.max(X[bx * block + i, j], 0.0)

    return main


class ModelNew(nn.Module):
    def forward(self, x, y):
        order = x.shape[-1] - 1 - torch.argsort(x.flip(-1), dim=-1, stable=True)
        return rectified(64, 512)(y.gather(1, order))
