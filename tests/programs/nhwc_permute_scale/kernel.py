import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def permute_kernel(N, C, P, tile=32, dtype="float16"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def permute(X: T.Tensor((N, C, P), dtype), G: T.Tensor((C,), dtype), Y: T.Tensor((N, P, C), dtype)):
        with T.Kernel(T.ceildiv(P, tile), T.ceildiv(C, tile), N, threads=(tile, 8)) as (bp, bc, n):
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            # one column of padding against bank conflicts
            buf = T.alloc_shared((tile, tile + 1), dtype)
            for r in T.serial(tile // 8):
                c = bc * tile + r * 8 + ty
                p = bp * tile + tx
                if c < C and p < P:
                    buf[r * 8 + ty, tx] = X[n, c, p] * G[c]
            T.sync_threads()
            for r in T.serial(tile // 8):
                p = bp * tile + r * 8 + ty
                c = bc * tile + tx
                if c < C and p < P:
                    Y[n, p, c] = buf[tx, r * 8 + ty]

    return permute


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(channels) + 0.5)
        self._cache = {}

    def forward(self, x):
        N, C, H, W = x.shape
        if (N, C, H, W) not in self._cache:
            self._cache[(N, C, H, W)] = permute_kernel(N, C, H * W)
        y = self._cache[(N, C, H, W)](x.half().contiguous().view(N, C, -1), self.gain.half())
        return y.view(N, H, W, C).to(x.dtype)
