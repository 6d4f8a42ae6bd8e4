import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _triu_matmul(N, block=64, block_K=32, dtype="float16", accum_dtype="float"):
    tiles = (N + block - 1) // block

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def triu_matmul(A: T.Tensor((N, N), dtype), B: T.Tensor((N, N), dtype), C: T.Tensor((N, N), dtype)):
        with T.Kernel(tiles, tiles, threads=128) as (bx, by):
            As = T.alloc_shared((block, block_K), dtype)
            Bs = T.alloc_shared((block_K, block), dtype)
            Cf = T.alloc_fragment((block, block), accum_dtype)
            T.clear(Cf)
            if by <= bx:
                # only k in [row, col] contributes
                for ko in T.serial((bx - by + 1) * (block // block_K)):
                    T.copy(A[by * block, by * block + ko * block_K], As)
                    T.copy(B[by * block + ko * block_K, bx * block], Bs)
                    T.gemm(As, Bs, Cf)
            for i, j in T.Parallel(block, block):
                gi = by * block + i
                gj = bx * block + j
                if gi < N and gj < N:
                    C[gi, gj] = T.if_then_else(gj >= gi, T.Cast(dtype, Cf[i, j]), T.Cast(dtype, 0))

    return triu_matmul


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._k = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor):
        n = A.shape[0]
        if n not in self._k:
            self._k[n] = _triu_matmul(n)
        a, b = (t.to(torch.float16).contiguous() for t in (A, B))
        return self._k[n](a, b).to(A.dtype)
