# level: tile
# model: odd_product
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def split(M, N, K, parts, bm=16, bn=16, bk=16, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), P: T.Tensor((parts, M, N), dtype)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), parts, threads=64) as (bx, by, bz):
            a = T.alloc_shared((bm, bk), dtype)
            b = T.alloc_shared((bk, bn), dtype)
            c = T.alloc_fragment((bm, bn), dtype)
            T.clear(c)
            for k in T.serial(T.ceildiv(T.ceildiv(K, bk), parts)):
                for i, j in T.Parallel(bm, bk):
                    a[i, j] = T.if_then_else(by * bm + i < M and (k * parts + bz) * bk + j < K, A[T.min(by * bm + i, M - 1), T.min((k * parts + bz) * bk + j, K - 1)], 0.0)
                for i, j in T.Parallel(bk, bn):
                    b[i, j] = T.if_then_else((k * parts + bz) * bk + i < K and bx * bn + j < N, B[T.min((k * parts + bz) * bk + i, K - 1), T.min(bx * bn + j, N - 1)], 0.0)
                T.gemm(a, b, c)
            for i, j in T.Parallel(bm, bn):
                if by * bm + i < M and bx * bn + j < N:
                    P[bz, by * bm + i, bx * bn + j] = c[i, j]

    return main


class ModelNew(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.linear = nn.Linear(n, m)
        self.register_buffer("turned", self.linear.weight.detach().t().contiguous(), persistent=False)

    def forward(self, x):
        parts = split(x.shape[0], self.turned.shape[1], x.shape[1], 3)(x, self.turned)
        return torch.square(F.relu(parts.sum(0) + self.linear.bias))
