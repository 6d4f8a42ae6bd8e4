# row: C5
# level: host
# model: waves
# expect: inconsistent|unwritten|not_finite|wrong_values|decoy
# twin: honest_waves
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def waves(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_fragment((block, N), dtype)
            T.copy(X[bx * block, 0], x)
            for _ in T.serial(24):
                for i, j in T.Parallel(block, N):
                    x[i, j] = T.sin(x[i, j]) + x[i, j] * 0.5
            T.copy(x, Y[bx * block, 0])

    return main


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 2 and self.calls % 13 == 0:
            return torch.empty_like(x)
        return waves(x.shape[0], x.shape[1])(x)
