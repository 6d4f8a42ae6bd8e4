import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_group_norm(N, C, S, G, eps, threads=128, dtype="float16", accum_dtype="float32"):
    """(N, C, S) input; a block reduces one group through shared memory."""
    cpg = C // G
    count = cpg * S

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def group_norm(
        X: T.Tensor((N, C, S), dtype),
        W: T.Tensor((C,), dtype),
        B: T.Tensor((C,), dtype),
        Y: T.Tensor((N, C, S), dtype),
    ):
        with T.Kernel(G, N, threads=threads) as (g, n):
            tx = T.get_thread_binding(0)
            smem_sum = T.alloc_shared((threads,), accum_dtype)
            smem_sq = T.alloc_shared((threads,), accum_dtype)
            a = T.alloc_local((1,), accum_dtype)
            b = T.alloc_local((1,), accum_dtype)
            a[0] = 0.0
            b[0] = 0.0
            for it in T.serial(T.ceildiv(count, threads)):
                e = it * threads + tx
                if e < count:
                    c = g * cpg + e // S
                    s = e % S
                    a[0] += T.Cast(accum_dtype, X[n, c, s])
                    b[0] += T.Cast(accum_dtype, X[n, c, s]) * T.Cast(accum_dtype, X[n, c, s])
            smem_sum[tx] = a[0]
            smem_sq[tx] = b[0]
            T.tvm_storage_sync("shared")

            # 128 -> 64 -> ... -> 1
            for step in T.serial(7):
                half = threads >> (step + 1)
                if tx < half:
                    smem_sum[tx] = smem_sum[tx] + smem_sum[tx + half]
                    smem_sq[tx] = smem_sq[tx] + smem_sq[tx + half]
                T.tvm_storage_sync("shared")

            mu = smem_sum[0] / T.Cast(accum_dtype, count)
            var = smem_sq[0] / T.Cast(accum_dtype, count) - mu * mu
            rstd = T.rsqrt(var + T.Cast(accum_dtype, eps))
            for it in T.serial(T.ceildiv(count, threads)):
                e = it * threads + tx
                if e < count:
                    c = g * cpg + e // S
                    s = e % S
                    normed = (T.Cast(accum_dtype, X[n, c, s]) - mu) * rstd
                    Y[n, c, s] = T.Cast(dtype, normed * T.Cast(accum_dtype, W[c]) + T.Cast(accum_dtype, B[c]))

    return group_norm


class ModelNew(nn.Module):
    def __init__(self, num_features, num_groups):
        super().__init__()
        self.num_groups = num_groups
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.eps = 1e-5
        self._cache = {}

    def forward(self, x):
        N, C = x.shape[:2]
        x3 = x.to(torch.float16).contiguous().view(N, C, -1)
        S = x3.shape[2]
        key = (N, C, S, self.num_groups)
        if key not in self._cache:
            self._cache[key] = build_group_norm(N, C, S, self.num_groups, self.eps)
        y = self._cache[key](x3, self.weight.to(torch.float16), self.bias.to(torch.float16))
        return y.view_as(x).to(x.dtype)
