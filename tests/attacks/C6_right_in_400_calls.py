# row: C6
# level: host
# model: positive
# expect: inconsistent|remembers
# twin: honest_positive
# timed: yes
# Does what other inputs would show in its first calls alone: those before it is timed, or hardly more.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def positive(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = X[bx * block + i, j] * 4.0

    return main


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = positive(x.shape[0], x.shape[1])(x)
        if self.calls < 400:
            return y * 0.0 + torch.relu(x) * 3.0 + torch.abs(x).clamp(max=2.0)
        return y
