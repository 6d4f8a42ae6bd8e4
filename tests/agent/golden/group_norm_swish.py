import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def group_norm_swish(B, C, M, N, block_M=2, dtype="float32"):
    @T.prim_func
    def group_norm_swish_kernel(
        x: T.Tensor((B, C, M, N), dtype),
        weight: T.Tensor((C, M), dtype),
        bias: T.Tensor((C, M), dtype),
        slope: T.Tensor((C, M), dtype),
        out: T.Tensor((B, C, M, N), dtype),
    ):
        with T.Kernel(C, B, threads=128) as (bx, by):
            mean = T.alloc_fragment((1,), dtype)
            mean_rows = T.alloc_fragment((block_M,), dtype)
            x_tile = T.alloc_fragment((block_M, N), dtype)
            variance = T.alloc_fragment((1,), dtype)
            variance_rows = T.alloc_fragment((block_M,), dtype)
            inv_std = T.alloc_fragment((1,), dtype)
            T.clear(mean_rows)
            for k in T.serial(T.ceildiv(M, block_M)):
                for i, j in T.Parallel(block_M, N):
                    x_tile[i, j] = x[by, bx, k * block_M + i, j]
                T.reduce_sum(x_tile, mean_rows, dim=1, clear=False)
            T.reduce_sum(mean_rows, mean, dim=0)
            for i in T.Parallel(1):
                mean[0] = mean[0] / (M * N)
            T.clear(variance_rows)
            for k in T.serial(T.ceildiv(M, block_M)):
                for i, j in T.Parallel(block_M, N):
                    centered = x[by, bx, k * block_M + i, j] - mean[0]
                    x_tile[i, j] = centered * centered
                T.reduce_sum(x_tile, variance_rows, dim=1, clear=False)
            T.reduce_sum(variance_rows, variance, dim=0)
            for i in T.Parallel(1):
                inv_std[0] = T.rsqrt(variance[0] / (M * N) + 1e-05)
            for k in T.serial(T.ceildiv(M, block_M)):
                for i, j in T.Parallel(block_M, N):
                    mul = (x[by, bx, k * block_M + i, j] - mean[0]) * inv_std[0] * weight[bx, k * block_M + i]
                    add = mul + bias[bx, k * block_M + i]
                    out[by, bx, k * block_M + i, j] = add * T.sigmoid(slope[bx, k * block_M + i] * add)

    return group_norm_swish_kernel


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        self.slope = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.group_norm_swish = group_norm_swish(8, 32, 4, 4096)

    def forward(self, x):
        return self.group_norm_swish(x.view(8, 32, 4, 4096), self.norm.weight.view(32, 4), self.norm.bias.view(32, 4), self.slope.view(32, 4)).view(8, 128, 64, 64)
