# row: A16
# level: host
# model: position
# expect: wrong_values
# twin: honest_position
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
    def __init__(self, n):
        super().__init__()
        self.table = nn.Parameter(torch.randn(16, n))
        self.register_buffer("position", torch.zeros(1, dtype=torch.long))
        self.register_buffer("counts", torch.zeros(32, dtype=torch.long))

    def forward(self, x):
        y = rectified(x.shape[0], x.shape[1])(x * self.table[self.position])
        self.position.add_(1).remainder_(16)
        return y
