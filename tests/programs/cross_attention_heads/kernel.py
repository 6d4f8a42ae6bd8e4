import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _scores_kernel(B, H, M, N, D, block_M=32, block_N=32, dtype="float16", accum_dtype="float"):
    scale = 1.0 / math.sqrt(D)

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def scores(
        Q: T.Tensor((B, H, M, D), dtype), K: T.Tensor((B, H, N, D), dtype), S: T.Tensor((B, H, M, N), accum_dtype)
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), B * H, threads=128) as (bx, by, bz):
            q = T.alloc_shared((block_M, D), dtype)
            k = T.alloc_shared((block_N, D), dtype)
            s = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(s)
            # point with four indices to a two-dimensional tile
            T.copy(Q[bz // H, bz % H, by * block_M, 0], q)
            T.copy(K[bz // H, bz % H, bx * block_N, 0], k)
            T.gemm(q, k, s, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                s[i, j] *= scale
            T.copy(s, S[bz // H, bz % H, by * block_M, bx * block_N])

    return scores


def _softmax_kernel(rows, cols, accum_dtype="float", dtype="float16", block_rows=4):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def softmax(S: T.Tensor((rows, cols), accum_dtype), P: T.Tensor((rows, cols), dtype)):
        with T.Kernel(T.ceildiv(rows, block_rows), threads=128) as bx:
            s = T.alloc_fragment((block_rows, cols), accum_dtype)
            m = T.alloc_fragment((block_rows,), accum_dtype)
            l = T.alloc_fragment((block_rows,), accum_dtype)
            T.copy(S[bx * block_rows, 0], s)
            T.reduce_max(s, m, dim=1)
            for i, j in T.Parallel(block_rows, cols):
                s[i, j] = T.exp(s[i, j] - m[i])
            T.reduce_sum(s, l, dim=-1)
            for i, j in T.Parallel(block_rows, cols):
                s[i, j] = s[i, j] / l[i]
            T.copy(s, P[bx * block_rows, 0])

    return softmax


def _values_kernel(BH, M, N, D, block_M=32, block_K=32, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def values(P: T.Tensor((BH, M, N), dtype), V: T.Tensor((BH, N, D), dtype), O: T.Tensor((BH, M, D), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), BH, threads=128) as (bx, bz):
            p = T.alloc_shared((block_M, block_K), dtype)
            v = T.alloc_shared((block_K, D), dtype)
            o = T.alloc_fragment((block_M, D), accum_dtype)
            T.clear(o)
            for k in T.Pipelined(T.ceildiv(N, block_K), num_stages=2):
                T.copy(P[bz, bx * block_M, k * block_K], p)
                T.copy(V[bz, k * block_K, 0], v)
                T.gemm(p, v, o)
            T.copy(o, O[bz, bx * block_M, 0])

    return values


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._cache = {}

    def forward(self, q, k, v):
        B, H, M, D = q.shape
        N = k.shape[-2]
        key = (B, H, M, N, D)
        if key not in self._cache:
            self._cache[key] = [
                _scores_kernel(B, H, M, N, D),
                _softmax_kernel(B * H * M, N),
                _values_kernel(B * H, M, N, D),
            ]
        scores, softmax, values = self._cache[key]
        s = scores(q.to(torch.float16).contiguous(), k.to(torch.float16).contiguous())
        p = softmax(s.view(-1, N)).view(B * H, M, N)
        o = values(p, v.to(torch.float16).contiguous().view(B * H, N, D))
        return o.view(B, H, M, D).to(q.dtype)
