import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _fused_kernel(M, N, K, scale, lo, hi, block_M=16, block_K=32, dtype="float16", accum_dtype="float"):
    """Whole rows of the product stay in one block so that the reduction needs no second pass."""

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def fused(
        A: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        bias: T.Tensor((N,), accum_dtype),
        Out: T.Tensor((M, 1), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as by:
            A_s = T.alloc_shared((block_M, block_K), dtype)
            W_s = T.alloc_shared((N, block_K), dtype)
            acc = T.alloc_fragment((block_M, N), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(W[0, k * block_K], W_s)
                T.gemm(A_s, W_s, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, N):
                acc[i, j] = T.max(T.min((acc[i, j] + bias[j]) * scale * 2.0, hi), lo)
            T.fill(row_max, -T.infinity(accum_dtype))
            T.reduce_max(acc, row_max, dim=1, clear=False)
            for i, j in T.Parallel(block_M, N):
                acc[i, j] = T.exp(acc[i, j] - row_max[i])
            T.reduce_sum(acc, row_sum, dim=1)
            for i in T.Parallel(block_M):
                if by * block_M + i < M:
                    lse = T.log(row_sum[i]) + row_max[i]
                    sp = T.log(1.0 + T.exp(lse))
                    Out[by * block_M + i, 0] = T.Cast(dtype, lse * lse * T.tanh(sp))

    return fused


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scale_factor, clamp_min, clamp_max):
        super().__init__()
        self.scale_factor = scale_factor
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max
        self.weight = nn.Parameter(torch.empty(hidden_size, input_size))
        self.bias = nn.Parameter(torch.empty(hidden_size))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        bound = 1 / math.sqrt(input_size)
        nn.init.uniform_(self.bias, -bound, bound)
        self._cache = {}

    def forward(self, x):
        M, K = x.shape
        N = self.weight.shape[0]
        key = (M, N, K)
        if key not in self._cache:
            self._cache[key] = _fused_kernel(M, N, K, self.scale_factor, self.clamp_min, self.clamp_max)
        return self._cache[key](
            x.to(torch.float16).contiguous(), self.weight.to(torch.float16).contiguous(), self.bias.to(torch.float32)
        ).to(x.dtype)
