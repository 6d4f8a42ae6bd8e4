import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build_linear_relu_kernel(
    M: int,
    N: int,
    K: int,
    block_M: int = 128,
    block_N: int = 128,
    block_K: int = 64,
    num_stages: int = 3,
    threads: int = 256,
    dtype: str = "float16",
    accum_dtype: str = "float",
):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def fused_linear_relu(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            Y_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(Y_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, k * block_K], X_shared)
                T.copy(W[bx * block_N, k * block_K], W_shared)
                T.gemm(X_shared, W_shared, Y_local, transpose_B=True)

            # epilogue: bias + relu
            for i, j in T.Parallel(block_M, block_N):
                m = by * block_M + i
                n = bx * block_N + j
                if m < M and n < N:
                    val = Y_local[i, j] + T.Cast(accum_dtype, B[n])
                    Y[m, n] = T.Cast(dtype, T.max(val, T.Cast(accum_dtype, 0)))

    return fused_linear_relu


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.randn(bias_shape))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self._kernel_cache = {}

    def _get_kernel(self, M: int, tl_dtype: str = "float16"):
        key = (M, self.out_features, self.in_features, tl_dtype)
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _build_linear_relu_kernel(M, self.out_features, self.in_features, dtype=tl_dtype)
        return self._kernel_cache[key]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x_fp16 = x.to(device=x.device, dtype=torch.float16).contiguous()
        w_fp16 = self.weight.to(device=x.device, dtype=torch.float16).contiguous()
        b_fp16 = self.bias.to(device=x.device, dtype=torch.float16).contiguous()
        kernel = self._get_kernel(x_fp16.shape[0])
        return kernel(x_fp16, w_fp16, b_fp16).to(x.dtype)
