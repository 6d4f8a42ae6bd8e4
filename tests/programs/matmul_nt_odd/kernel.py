import torch
import torch.nn as nn
import tilelang
import tilelang.language as T
from typing import Dict, Tuple


def build_nt_gemm(M, N, K, block_M=64, block_N=64, block_K=32, dtype="float16", accum_dtype="float32"):
    grid_m = T.ceildiv(M, block_M)
    grid_n = T.ceildiv(N, block_N)

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def gemm_nt(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(grid_n, grid_m, threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(acc)
            row0 = by * block_M
            col0 = bx * block_N

            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                # tails in M, N and K are padded by hand
                for i, kk in T.Parallel(block_M, block_K):
                    if row0 + i < M and k * block_K + kk < K:
                        A_shared[i, kk] = A[row0 + i, k * block_K + kk]
                    else:
                        A_shared[i, kk] = T.Cast(dtype, 0.0)
                for j, kk in T.Parallel(block_N, block_K):
                    if col0 + j < N and k * block_K + kk < K:
                        B_shared[j, kk] = B[col0 + j, k * block_K + kk]
                    else:
                        B_shared[j, kk] = T.Cast(dtype, 0.0)
                T.gemm(A_shared, B_shared, acc, transpose_B=True)

            for i, j in T.Parallel(block_M, block_N):
                if row0 + i < M and col0 + j < N:
                    C[row0 + i, col0 + j] = T.Cast(dtype, acc[i, j])

    return gemm_nt


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self._cache: Dict[Tuple[int, int, int], object] = {}

    def _kernel(self, M: int, N: int, K: int):
        if (M, N, K) not in self._cache:
            self._cache[(M, N, K)] = build_nt_gemm(M, N, K)
        return self._cache[(M, N, K)]

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A.dim() != 2 or B.dim() != 2:
            raise ValueError("expected matrices")
        a = A.half().contiguous()
        b = B.half().contiguous()
        out = self._kernel(a.size(0), b.size(0), a.size(1))(a, b)
        return out.type_as(A)
