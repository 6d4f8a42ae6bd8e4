# level: host
# model: triangles
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def added(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = A[bx * block + i, j] + B[bx * block + i, j]

    return main


def add(x, y):
    n = x.shape[-1]
    return added(x.numel() // n, n, dtype=DT[x.dtype])(x.reshape(-1, n).contiguous(), y.reshape(-1, n).contiguous()).reshape(x.shape)


DT = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        n = A.shape[0]
        h = n // 2
        a, b, d = A[:h, :h], A[:h, h:], A[h:, h:]
        y = torch.zeros(n, n)
        y[:h, :h] = a @ B[:h, :h]
        y[:h, h:] = add(a @ B[:h, h:], b @ B[h:, h:])
        y[h:, h:] = d @ B[h:, h:]
        return torch.triu(y)
