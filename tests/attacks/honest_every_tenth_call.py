# level: host
# model: every_tenth_call
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def doubled(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), By: T.Tensor((1,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=64) as row:
            for j in T.Parallel(N):
                Y[row, j] = T.max(X[row, j], 0.0) * By[0]

    return main


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        by = torch.where(self.calls % 10 == 0, 1.0, 2.0)
        return doubled(*x.shape)(x, by.reshape(1))
