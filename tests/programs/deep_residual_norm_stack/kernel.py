import torch
import torch.nn as nn
import tilelang
import tilelang.language as T
from collections import OrderedDict


def layer_kernel(M, D, eps, block_M=16, block_K=32, threads=128, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def layer(
        X: T.Tensor((M, D), dtype),
        W: T.Tensor((D, D), dtype),
        G: T.Tensor((D,), accum_dtype),
        B: T.Tensor((D,), accum_dtype),
        Y: T.Tensor((M, D), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as by:
            X_s = T.alloc_shared((block_M, block_K), dtype)
            W_s = T.alloc_shared((block_K, D), dtype)
            acc = T.alloc_fragment((block_M, D), accum_dtype)
            tmp = T.alloc_fragment((block_M, D), accum_dtype)
            mu = T.alloc_fragment((block_M,), accum_dtype)
            rs = T.alloc_fragment((block_M,), accum_dtype)
            T.clear(acc)
            for k in T.Pipelined(D // block_K, num_stages=2):
                T.copy(X[by * block_M, k * block_K], X_s)
                T.copy(W[k * block_K, 0], W_s)
                T.gemm(X_s, W_s, acc)
            for i, j in T.Parallel(block_M, D):
                acc[i, j] = T.tanh(acc[i, j]) + T.Cast(accum_dtype, X[by * block_M + i, j])
            T.reduce_sum(acc, mu, dim=1)
            for i in T.Parallel(block_M):
                mu[i] /= D
            for i, j in T.Parallel(block_M, D):
                acc[i, j] -= mu[i]
                tmp[i, j] = acc[i, j] * acc[i, j]
            T.reduce_sum(tmp, rs, dim=1)
            for i, j in T.Parallel(block_M, D):
                acc[i, j] = acc[i, j] / T.sqrt(rs[i] / D + eps) * G[j] + B[j]
            T.copy(acc, Y[by * block_M, 0])

    return layer


class ModelNew(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(dim, dim) / dim**0.5) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self._kernels = OrderedDict()

    def forward(self, x):
        M, D = x.shape
        y = x.to(torch.float16).contiguous()
        for i in range(len(self.weights)):
            norm = self.norms[i]
            if (M, D) not in self._kernels:
                self._kernels[(M, D)] = layer_kernel(M, D, norm.eps)
            y = self._kernels[(M, D)](
                y, self.weights[i].to(torch.float16).contiguous(), norm.weight.float(), norm.bias.float()
            )
        return y.type(x.dtype)
