# level: host
# model: zero_points
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
    def __init__(self, n, k):
        super().__init__()
        self.register_buffer("qweight", torch.randint(-127, 128, (n, k), dtype=torch.int8))
        self.register_buffer("zeros", torch.zeros(n, 1, dtype=torch.int8))
        self.register_buffer("scales", torch.rand(n, 1) * 0.01)

    def forward(self, x):
        w = (self.qweight.float() - self.zeros.float()) * self.scales
        return rectified(64, 128)(x @ w.t())
