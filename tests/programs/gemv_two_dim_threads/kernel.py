import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _gemv(N, K, BLOCK_N=8, REDUCE_THREADS=32, dtype="float16", accum_dtype="float"):
    """threads = (reduction lanes, rows): each row of threads reduces its own row of A."""

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def gemv(
        A: T.Tensor((N, K), dtype),
        v: T.Tensor((K,), dtype),
        b: T.Tensor((N,), dtype),
        out: T.Tensor((N,), dtype),
    ):
        with T.Kernel(T.ceildiv(N, BLOCK_N), threads=(REDUCE_THREADS, BLOCK_N)) as bn:
            tk = T.get_thread_binding(0)
            tn = T.get_thread_binding(1)
            row = bn * BLOCK_N + tn
            part = T.alloc_local((1,), accum_dtype)
            total = T.alloc_local((1,), accum_dtype)
            part[0] = T.Cast(accum_dtype, 0)
            for ko in T.serial(T.ceildiv(K, REDUCE_THREADS)):
                k = ko * REDUCE_THREADS + tk
                if row < N and k < K:
                    part[0] += A[row, k].astype(accum_dtype) * v[k].astype(accum_dtype)
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.Cast(accum_dtype, 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), part[0], True, total[0], tk, dtype="handle"))
            if tk == 0 and row < N:
                out[row] = T.Cast(dtype, total[0] + T.Cast(accum_dtype, b[row]))

    return gemv


class ModelNew(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.offset = nn.Parameter(torch.randn(rows))
        self._cache = {}

    def forward(self, A, v):
        N, K = A.shape
        if (N, K) not in self._cache:
            self._cache[(N, K)] = _gemv(N, K)
        return self._cache[(N, K)](A.half().contiguous(), v.half().contiguous(), self.offset.half()).to(A.dtype)
