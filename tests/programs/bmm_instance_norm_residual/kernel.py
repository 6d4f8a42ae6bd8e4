import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _gemm_rownorm(
    M, N, K, eps, block_M=32, block_K=32, num_stages=2, threads=128, dtype="float16", accum_dtype="float"
):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def gemm_rownorm(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        B: T.Tensor((N,), dtype),
        R: T.Tensor((M, N), dtype),
        O: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(1, T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_s = T.alloc_shared((block_M, block_K), dtype)
            W_s = T.alloc_shared((N, block_K), dtype)
            acc = T.alloc_fragment((block_M, N), accum_dtype)
            sq = T.alloc_fragment((block_M, N), accum_dtype)
            mean = T.alloc_fragment((block_M,), accum_dtype)
            msq = T.alloc_fragment((block_M,), accum_dtype)

            T.clear(acc)
            for ko in T.Pipelined(0, T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M : (by + 1) * block_M, ko * block_K : (ko + 1) * block_K], X_s)
                T.copy(W[0:N, ko * block_K : (ko + 1) * block_K], W_s)
                T.gemm(X_s, W_s, acc, transpose_B=True)

            for i, j in T.Parallel(block_M, N):
                acc[i, j] = acc[i, j] + B[j]
            for i, j in T.Parallel(block_M, N):
                sq[i, j] = acc[i, j] * acc[i, j]
            T.reduce_sum(acc, mean, dim=1)
            T.reduce_sum(sq, msq, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / N
                msq[i] = T.rsqrt(msq[i] / N - mean[i] * mean[i] + eps)
            for i, j in T.Parallel(block_M, N):
                if by * block_M + i < M:
                    r = T.Cast(accum_dtype, R[by * block_M + i, j])
                    O[by * block_M + i, j] = T.Cast(dtype, ((acc[i, j] - mean[i]) * msq[i] + r) * r)

    return gemm_rownorm


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        nn.init.uniform_(self.bias, -1 / math.sqrt(in_features), 1 / math.sqrt(in_features))
        self._kernel_cache = {}

    def forward(self, x, y):
        M, K = x.shape
        N = y.shape[1]
        if (M, N, K) not in self._kernel_cache:
            self._kernel_cache[(M, N, K)] = _gemm_rownorm(M, N, K, self.eps)
        half = lambda t: t.to(torch.float16).contiguous()  # noqa: E731
        return self._kernel_cache[(M, N, K)](half(x), half(self.weight), half(self.bias), half(y)).to(x.dtype)
