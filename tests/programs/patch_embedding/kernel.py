import torch
import torch.nn as nn
import tilelang
import tilelang.language as T
from tilelang.layout import make_swizzled_layout


def _patch_gemm(B, P, K, D, block_M=32, block_N=64, block_K=32, threads=128, dtype="float16", accum_dtype="float"):
    M = B * P

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def patch_gemm(
        A: T.Tensor((M, K), dtype),
        W: T.Tensor((D, K), dtype),
        bias: T.Tensor((D,), dtype),
        cls: T.Tensor((D,), dtype),
        pos: T.Tensor((P + 1, D), dtype),
        Out: T.Tensor((B, P + 1, D), dtype),
    ):
        with T.Kernel(T.ceildiv(D, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.annotate_layout(
                {A_shared: make_swizzled_layout(A_shared), W_shared: make_swizzled_layout(W_shared)}
            )
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(W[bx * block_N, k * block_K], W_shared)
                T.gemm(A_shared, W_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                m = by * block_M + i
                d = bx * block_N + j
                if m < M and d < D:
                    b = m // P
                    p = m % P
                    Out[b, p + 1, d] = T.Cast(
                        dtype, acc[i, j] + T.Cast(accum_dtype, bias[d]) + T.Cast(accum_dtype, pos[p + 1, d])
                    )
                    if p == 0:
                        Out[b, 0, d] = cls[d] + pos[0, d]

    return patch_gemm


class ModelNew(nn.Module):
    def __init__(self, image_size, patch_size, channels, dim):
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patch_size = patch_size
        self.pos_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim))
        self.patch_to_embedding = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self._kernel_cache = {}

    def forward(self, img):
        B, C = img.shape[0], img.shape[1]
        p = self.patch_size
        x = img.unfold(2, p, p).unfold(3, p, p).reshape(B, -1, p * p * C)
        P, K = x.shape[1], x.shape[2]
        D = self.patch_to_embedding.out_features
        key = (B, P, K, D)
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _patch_gemm(*key)
        return self._kernel_cache[key](
            x.to(torch.float16).reshape(B * P, K).contiguous(),
            self.patch_to_embedding.weight.to(torch.float16).contiguous(),
            self.patch_to_embedding.bias.to(torch.float16).contiguous(),
            self.cls_token.to(torch.float16).reshape(D).contiguous(),
            self.pos_embedding.to(torch.float16).squeeze(0).contiguous(),
        ).to(img.dtype)
