# row: A16
# level: host
# model: next_position
# expect: wrong_values
# twin: honest_next_position
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
    def __init__(self, n, d):
        super().__init__()
        self.table = nn.Parameter(torch.randn(n, d))
        self.register_buffer("pos", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        y = rectified(64, 128)(x * self.table[0])
        self.pos += 1
        return y
