import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build_partial(M, N, K, splits, block_M=64, block_N=64, block_K=64, dtype="float16", accum_dtype="float"):
    k_per_split = K // splits

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def partial_gemm(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        P: T.Tensor((splits, M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=128) as (bx, by, bz):
            As = T.alloc_shared((block_M, block_K), dtype)
            Bs = T.alloc_shared((block_K, block_N), dtype)
            Cl = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(Cl)
            k_base = bz * k_per_split
            for ko in T.Pipelined(T.ceildiv(k_per_split, block_K), num_stages=2):
                T.copy(A[by * block_M, k_base + ko * block_K], As)
                T.copy(B[k_base + ko * block_K, bx * block_N], Bs)
                T.gemm(As, Bs, Cl)
            T.copy(Cl, P[bz, by * block_M, bx * block_N])

    return partial_gemm


def _build_reduce(M, N, splits, threads=256, dtype="float16", accum_dtype="float"):
    total = M * N

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def reduce_splits(P: T.Tensor((splits, M, N), accum_dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            s = T.alloc_local((1,), accum_dtype)
            idx = bx * threads + tx
            if idx < total:
                i = idx // N
                j = idx % N
                s[0] = 0.0
                for z in T.serial(splits):
                    s[0] = s[0] + P[z, i, j]
                C[i, j] = T.Cast(dtype, s[0])

    return reduce_splits


class ModelNew(nn.Module):
    SPLITS = 16

    def __init__(self):
        super().__init__()
        self._cache = {}

    def forward(self, A, B):
        M, K = A.shape
        N = B.shape[1]
        splits = self.SPLITS if K % self.SPLITS == 0 else 1
        key = (M, N, K, splits)
        if key not in self._cache:
            self._cache[key] = (_build_partial(M, N, K, splits), _build_reduce(M, N, splits))
        gemm, reduce = self._cache[key]
        partial = gemm(A.to(torch.float16).contiguous(), B.to(torch.float16).contiguous())
        return reduce(partial).to(A.dtype)
