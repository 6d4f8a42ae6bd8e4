import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _gemm_bias(M, N, K, block_M=64, block_N=32, block_K=32, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def gemm_bias(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        bias: T.Tensor((N,), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K), dtype)
            C_l = T.alloc_fragment((block_M, block_N), accum_dtype)
            bias_s = T.alloc_shared((block_N,), dtype)
            T.clear(C_l)
            T.copy(bias[bx * block_N], bias_s)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[bx * block_N, k * block_K], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                C_l[i, j] += T.Cast(accum_dtype, bias_s[j])
            T.copy(C_l, C[by * block_M, bx * block_N])

    return gemm_bias


class ModelNew(nn.Module):
    """1x1 convolution = matrix product over channels in NHWC order."""

    def __init__(self, in_channels, out_channels, bias=True):
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, 1, 1))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if bias:
            bound = 1.0 / math.sqrt(in_channels)
            self.bias = nn.Parameter(torch.empty(out_channels).uniform_(-bound, bound))
        else:
            self.bias = None
        self._cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, C, H, W = x.shape
        a = x.to(torch.float16).permute(0, 2, 3, 1).contiguous().view(-1, C)
        w = self.weight.to(torch.float16).view(self.out_channels, C).contiguous()
        if self.bias is not None:
            bias = self.bias.to(torch.float16)
        else:
            bias = torch.zeros(self.out_channels, dtype=torch.float16, device=x.device)
        key = (a.shape[0], self.out_channels, C)
        if key not in self._cache:
            self._cache[key] = _gemm_bias(*key)
        y = self._cache[key](a, w, bias)
        return y.view(B, H, W, self.out_channels).permute(0, 3, 1, 2).contiguous().to(x.dtype)
