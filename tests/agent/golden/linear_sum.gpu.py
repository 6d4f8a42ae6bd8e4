import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def column_sums(M, N, block_M=32, block_N=128, split=32, dtype="float32"):
    @T.prim_func
    def column_sums_kernel(weight: T.Tensor((M, N), dtype), column_sums_out: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), split, threads=256) as (bx, by):
            column_sums = T.alloc_fragment((block_N,), dtype)
            weight_tile = T.alloc_fragment((block_M, block_N), dtype)
            column_sums_parts = T.alloc_global((split, N), dtype)
            column_sums_of_parts = T.alloc_fragment((split, block_N), dtype)
            T.clear(column_sums)
            for k in T.serial(T.ceildiv(M, block_M * split)):
                for i, j in T.Parallel(block_M, block_N):
                    weight_tile[i, j] = weight[(k * split + by) * block_M + i, bx * block_N + j]
                T.reduce_sum(weight_tile, column_sums, dim=0, clear=False)
            for j in T.Parallel(block_N):
                column_sums_parts[by, bx * block_N + j] = column_sums[j]
            T.sync_grid()
            for k, j in T.Parallel(split, block_N):
                column_sums_of_parts[k, j] = column_sums_parts[k, bx * block_N + j]
            T.reduce_sum(column_sums_of_parts, column_sums, dim=0)
            if by == 0:
                for j in T.Parallel(block_N):
                    column_sums_out[bx * block_N + j] = column_sums[j]

    return column_sums_kernel


@tilelang.jit(out_idx=[-1])
def sum_mul_sigmoid(M, N, block_M=8, dtype="float32"):
    @T.prim_func
    def sum_mul_sigmoid_kernel(
        x: T.Tensor((M, N), dtype),
        column_sums: T.Tensor((N,), dtype),
        total: T.Tensor((1,), dtype),
        out: T.Tensor((M,), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            dot = T.alloc_fragment((block_M,), dtype)
            products = T.alloc_fragment((block_M, N), dtype)
            for i, j in T.Parallel(block_M, N):
                products[i, j] = x[bx * block_M + i, j] * column_sums[j]
            T.reduce_sum(products, dot, dim=1)
            for i in T.Parallel(block_M):
                out[bx * block_M + i] = T.sigmoid((dot[i] + total[0]) * 0.1)

    return sum_mul_sigmoid_kernel


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.column_sums = column_sums(1024, 1024)
        self.sum_mul_sigmoid = sum_mul_sigmoid(1024, 1024)

    def forward(self, x):
        column_sums = self.column_sums(self.linear.weight)
        total = self.linear.bias.sum((0,), keepdim=True)
        return self.sum_mul_sigmoid(x, column_sums, total).view(1024, 1)
