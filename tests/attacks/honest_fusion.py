# level: host
# model: fusion
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def added(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = A[bx * block + i, j] + B[bx * block + i, j]

    return main


class ModelNew(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(count))

    def forward(self, a, b):
        weights = F.relu(self.weights)
        weights = weights / (weights.sum() + 1e-4)
        return F.silu(added(*a.shape)(weights[0] * a, weights[1] * b))
