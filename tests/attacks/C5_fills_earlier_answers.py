# row: C5
# level: host
# model: waves
# expect: wrong_values|inconsistent|unwritten|reused_memory|not_finite
# twin: honest_waves
# timed: yes
# Gives fresh memory, and fills in the answers some calls later.
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
        self.queue = []

    def forward(self, x):
        y = torch.empty_like(x)
        self.queue.append((x, y))
        if len(self.queue) == 4:
            for x, y in self.queue:
                y.copy_(waves(x.shape[0], x.shape[1])(x))
            self.queue = []
        return y
