import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


# K is tiny: no shared memory, every thread keeps a row of A in registers.
def _outer_kernel(M, N, K, TX=32, TY=8, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def outer(
        A: T.Tensor([M, K], dtype),
        B: T.Tensor([K, N], dtype),
        C: T.Tensor([M, N], dtype),
    ):
        with T.Kernel(T.ceildiv(N, TX), T.ceildiv(M, TY), threads=(TX, TY)) as (bx, by):
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            a_reg = T.alloc_local((K,), dtype)
            acc = T.alloc_local((1,), accum_dtype)
            m = by * TY + ty
            n = bx * TX + tx
            if m < M and n < N:
                for k in T.unroll(K):
                    a_reg[k] = A[m, k]
                acc[0] = T.float32(0)
                for k in T.unroll(K):
                    acc[0] += a_reg[k].astype(accum_dtype) * B[k, n].astype(accum_dtype)
                C[m, n] = acc[0].astype(dtype)

    return outer


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._cached = {}

    def forward(self, A, B):
        key = (tuple(A.shape), tuple(B.shape))
        if key not in self._cached:
            (M, K), (_, N) = key
            self._cached[key] = _outer_kernel(M, N, K)
        result = self._cached[key](A.to(torch.float16).contiguous(), B.to(torch.float16).contiguous())
        return result.to(A.dtype)
