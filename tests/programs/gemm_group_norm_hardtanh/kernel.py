import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_gemm(M, N, K, block_M=32, block_N=64, block_K=64, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def gemm(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        B: T.Tensor((N,), accum_dtype),
        Y: T.Tensor((M, N), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            Xs = T.alloc_shared((block_M, block_K), dtype)
            Ws = T.alloc_shared((block_N, block_K), dtype)
            Yl = T.alloc_fragment((block_M, block_N), accum_dtype)
            for i, j in T.Parallel(block_M, block_N):
                Yl[i, j] = B[bx * block_N + j]
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(X[by * block_M, k * block_K], Xs)
                T.copy(W[bx * block_N, k * block_K], Ws)
                T.gemm(Xs, Ws, Yl, transpose_B=True)
            T.copy(Yl, Y[by * block_M, bx * block_N])

    return gemm


def build_norm(M, N, G, lo, hi, eps, threads=64, dtype="float16", accum_dtype="float"):
    group = N // G
    work = M * G

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def norm_clamp(
        Y: T.Tensor((M, N), accum_dtype),
        gamma: T.Tensor((N,), accum_dtype),
        beta: T.Tensor((N,), accum_dtype),
        Z: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(work, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            wid = bx * threads + tx
            mu = T.alloc_local((1,), accum_dtype)
            m2 = T.alloc_local((1,), accum_dtype)
            if wid < work:
                m = wid // G
                g = wid % G
                mu[0] = 0.0
                m2[0] = 0.0
                for c in T.serial(group):
                    mu[0] += Y[m, g * group + c]
                mu[0] = mu[0] / group
                for c in T.serial(group):
                    m2[0] += (Y[m, g * group + c] - mu[0]) * (Y[m, g * group + c] - mu[0])
                rstd = 1.0 / T.sqrt(m2[0] / group + eps)
                for c in T.serial(group):
                    n = g * group + c
                    v = (Y[m, n] - mu[0]) * rstd * gamma[n] + beta[n]
                    Z[m, n] = T.Cast(dtype, T.min(T.max(v, lo), hi))

    return norm_clamp


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, num_groups, hardtanh_min, hardtanh_max):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.group_norm = nn.GroupNorm(num_groups, out_features)
        self.lo, self.hi = hardtanh_min, hardtanh_max
        self._gemm_kernels = {}
        self._norm_kernels = {}

    def forward(self, x):
        M, K = x.shape
        N = self.gemm.out_features
        if M not in self._gemm_kernels:
            self._gemm_kernels[M] = build_gemm(M, N, K)
            self._norm_kernels[M] = build_norm(
                M, N, self.group_norm.num_groups, self.lo, self.hi, self.group_norm.eps
            )
        y = self._gemm_kernels[M](x.half().contiguous(), self.gemm.weight.half(), self.gemm.bias.float())
        z = self._norm_kernels[M](y, self.group_norm.weight.float(), self.group_norm.bias.float())
        return z.to(x.dtype)
