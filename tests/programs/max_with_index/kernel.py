import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build(M, N, threads=64, dtype="float16"):
    """Two outputs: values and int32 positions."""

    @tilelang.jit(out_idx=[1, 2])
    @T.prim_func
    def row_max(
        X: T.Tensor((M, N), dtype),
        V: T.Tensor((M,), dtype),
        I: T.Tensor((M,), "int32"),
    ):
        with T.Kernel(T.ceildiv(M, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            row = bx * threads + tx
            best = T.alloc_local((1,), dtype)
            where = T.alloc_local((1,), "int32")
            if row < M:
                best[0] = X[row, 0]
                where[0] = 0
                for c in T.serial(1, N):
                    if X[row, c] > best[0]:
                        best[0] = X[row, c]
                        where[0] = c
                V[row] = best[0]
                I[row] = where[0]

    return row_max


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._k = {}

    def forward(self, x):
        M, N = x.shape
        if (M, N) not in self._k:
            self._k[(M, N)] = _build(M, N)
        values, indices = self._k[(M, N)](x.to(torch.float16).contiguous())
        return values.to(x.dtype), indices.to(torch.int64)
