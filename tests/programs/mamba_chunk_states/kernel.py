import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _chunk_diag(batch, seqlen, chunk, d, n, threads=128, dtype="float16", accum_dtype="float"):
    num_chunks = seqlen // chunk

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def chunk_diag(
        X: T.Tensor((batch, seqlen, d), dtype),
        A: T.Tensor((batch, seqlen), accum_dtype),
        B: T.Tensor((batch, seqlen, n), dtype),
        C: T.Tensor((batch, seqlen, n), dtype),
        Y: T.Tensor((batch, seqlen, d), dtype),
    ):
        with T.Kernel(num_chunks, batch, threads=threads) as (bc, bb):
            Xs = T.alloc_shared((chunk, d), dtype)
            Bs = T.alloc_shared((chunk, n), dtype)
            Cs = T.alloc_shared((chunk, n), dtype)
            Ss = T.alloc_shared((chunk, chunk), dtype)
            a_cum = T.alloc_shared((chunk,), accum_dtype)
            S = T.alloc_fragment((chunk, chunk), accum_dtype)
            O = T.alloc_fragment((chunk, d), accum_dtype)
            base = bc * chunk
            T.copy(X[bb, base, 0], Xs)
            T.copy(B[bb, base, 0], Bs)
            T.copy(C[bb, base, 0], Cs)
            T.copy(A[bb, base : base + chunk], a_cum)
            T.clear(S)
            T.gemm(Cs, Bs, S, transpose_B=True)
            for i, j in T.Parallel(chunk, chunk):
                S[i, j] = T.if_then_else(i >= j, S[i, j] * T.exp(a_cum[i] - a_cum[j]), 0.0)
            T.copy(S, Ss)
            T.clear(O)
            T.gemm(Ss, Xs, O)
            T.copy(O, Y[bb, base, 0])

    return chunk_diag


class ModelNew(nn.Module):
    def __init__(self, chunk):
        super().__init__()
        self.chunk = chunk
        self._cache = {}

    def forward(self, X, A, B, C):
        b, l, d = X.shape
        n = B.shape[-1]
        key = (b, l, d, n)
        if key not in self._cache:
            self._cache[key] = _chunk_diag(b, l, self.chunk, d, n)
        a_cum = A.float().view(b, l // self.chunk, self.chunk).cumsum(dim=-1).view(b, l).contiguous()
        x16, b16, c16 = [t.to(torch.float16).contiguous() for t in (X, B, C)]
        return self._cache[key](x16, a_cum, b16, c16).to(X.dtype)
