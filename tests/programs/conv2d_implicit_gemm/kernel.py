"""3x3 convolution as an implicit GEMM: the im2col tile is gathered into shared memory."""

import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _implicit_gemm_conv(
    N,
    C,
    H,
    W,
    F,
    K,
    P,
    block_M=64,
    block_N=64,
    block_K=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float",
):
    OH = H + 2 * P - K + 1
    OW = W + 2 * P - K + 1
    GM = N * OH * OW
    GK = C * K * K

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def conv(
        data: T.Tensor((N, C, H, W), dtype),
        weight: T.Tensor((F, GK), dtype),
        out: T.Tensor((N, F, OH, OW), dtype),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(GM, block_M), threads=threads) as (bx, by):
            data_shared = T.alloc_shared((block_M, block_K), dtype)
            weight_shared = T.alloc_shared((block_N, block_K), dtype)
            out_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(out_local)

            for ko in T.Pipelined(T.ceildiv(GK, block_K), num_stages=num_stages):
                for i, j in T.Parallel(block_M, block_K):
                    m = by * block_M + i
                    k = ko * block_K + j
                    n = m // (OH * OW)
                    oh = (m % (OH * OW)) // OW
                    ow = m % OW
                    c = k // (K * K)
                    ih = oh + (k % (K * K)) // K - P
                    iw = ow + k % K - P
                    in_bound = m < GM and k < GK and ih >= 0 and ih < H and iw >= 0 and iw < W
                    data_shared[i, j] = T.if_then_else(in_bound, data[n, c, ih, iw], T.Cast(dtype, 0))
                T.copy(weight[bx * block_N, ko * block_K], weight_shared)
                T.gemm(data_shared, weight_shared, out_local, transpose_B=True)

            for i, j in T.Parallel(block_M, block_N):
                m = by * block_M + i
                f = bx * block_N + j
                if m < GM and f < F:
                    out[m // (OH * OW), f, (m % (OH * OW)) // OW, m % OW] = T.Cast(
                        dtype, T.max(out_local[i, j], T.Cast(accum_dtype, 0))
                    )

    return conv


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, padding):
        super().__init__()
        self.kernel_size = kernel_size
        self.padding = padding
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, kernel_size, kernel_size))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self._cache = {}

    def forward(self, x):
        N, C, H, W = x.shape
        F = self.weight.shape[0]
        key = (N, C, H, W, F)
        if key not in self._cache:
            self._cache[key] = _implicit_gemm_conv(N, C, H, W, F, self.kernel_size, self.padding)
        w2d = self.weight.view(F, -1).to(torch.float16).contiguous()
        return self._cache[key](x.to(torch.float16).contiguous(), w2d).to(x.dtype)
