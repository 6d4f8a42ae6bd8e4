# level: host
# model: gemma_norm
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def mapped(N, scale=1.0, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = X[bx * block + i] * scale

    return main


def times(x, scale):
    return mapped(x.numel(), scale)(x.contiguous().view(-1)).view(x.shape)


@tilelang.jit(out_idx=[-1])
def norm(M, N, block=4, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            x = T.alloc_fragment((block, N), dtype)
            q = T.alloc_fragment((block, N), dtype)
            s = T.alloc_fragment((block,), dtype)
            T.copy(X[bx * block, 0], x)
            for i, j in T.Parallel(block, N):
                q[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(q, s, dim=1)
            for i in T.Parallel(block):
                s[i] = T.rsqrt(s[i] / N + 1e-6)
            for i, j in T.Parallel(block, N):
                x[i, j] = x[i, j] * s[i] * (1.0 + W[j])
            T.copy(x, Y[bx * block, 0])

    return main


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n))


    def forward(self, x):
        return norm(*x.shape)(x, self.weight)
