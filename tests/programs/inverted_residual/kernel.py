import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def depthwise_relu6(N, C, H, W, threads=128, dtype="float16", accum_dtype="float"):
    total = N * C * H * W

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def kernel(X: T.Tensor((N, C, H, W), dtype), F: T.Tensor((C, 3, 3), dtype), Y: T.Tensor((N, C, H, W), dtype)):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            tid = T.get_thread_binding(0)
            idx = bx * threads + tid
            if idx < total:
                w = idx % W
                h = (idx // W) % H
                c = (idx // (W * H)) % C
                n = idx // (W * H * C)
                acc = T.alloc_local((1,), accum_dtype)
                acc[0] = T.Cast(accum_dtype, 0)
                for r in T.unroll(3):
                    for s in T.unroll(3):
                        hh = h + r - 1
                        ww = w + s - 1
                        valid = (hh >= 0) and (hh < H) and (ww >= 0) and (ww < W)
                        # the expanded activation is clamped when it is read
                        v = T.if_then_else(valid, T.Cast(accum_dtype, X[n, c, hh, ww]), T.Cast(accum_dtype, 0))
                        acc[0] += T.min(T.max(v, 0.0), 6.0) * T.Cast(accum_dtype, F[c, r, s])
                Y[n, c, h, w] = T.Cast(dtype, T.min(T.max(acc[0], 0.0), 6.0))

    return kernel


def project_add(N, C, K, P, block_M=16, block_N=64, block_K=16, dtype="float16", accum_dtype="float"):
    """out[n] = x[n] + W (C, K) @ y[n] (K, P)"""

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def kernel(
        Wp: T.Tensor((C, K), dtype),
        Y: T.Tensor((N, K, P), dtype),
        X: T.Tensor((N, C, P), dtype),
        O: T.Tensor((N, C, P), dtype),
    ):
        with T.Kernel(T.ceildiv(P, block_N), T.ceildiv(C, block_M), N, threads=64) as (bx, by, bz):
            Ws = T.alloc_shared((block_M, block_K), dtype)
            Ys = T.alloc_shared((block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=0):
                T.copy(Wp[by * block_M, k * block_K], Ws)
                T.copy(Y[bz, k * block_K, bx * block_N], Ys)
                T.gemm(Ws, Ys, acc)
            for i, j in T.Parallel(block_M, block_N):
                if by * block_M + i < C and bx * block_N + j < P:
                    O[bz, by * block_M + i, bx * block_N + j] = T.Cast(
                        dtype, acc[i, j] + T.Cast(accum_dtype, X[bz, by * block_M + i, bx * block_N + j])
                    )

    return kernel


class ModelNew(nn.Module):
    def __init__(self, channels, expand_ratio):
        super().__init__()
        hidden = channels * expand_ratio
        self.expand = nn.Conv2d(channels, hidden, 1, bias=False)
        self.depthwise = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False)
        self.project = nn.Conv2d(hidden, channels, 1, bias=False)
        self._cache = {}

    def forward(self, x):
        N, C, H, W = x.shape
        hidden = self.expand.out_channels
        if (N, H, W) not in self._cache:
            self._cache[(N, H, W)] = (depthwise_relu6(N, hidden, H, W), project_add(N, C, hidden, H * W))
        dw, proj = self._cache[(N, H, W)]
        y = self.expand(x).to(torch.float16).contiguous()
        y = dw(y, self.depthwise.weight.to(torch.float16).squeeze(1).contiguous())
        x16 = x.to(torch.float16).contiguous()
        out = proj(
            self.project.weight.to(torch.float16).view(C, hidden).contiguous(),
            y.view(N, hidden, H * W),
            x16.view(N, C, H * W),
        )
        return out.view(N, C, H, W).to(x.dtype)
