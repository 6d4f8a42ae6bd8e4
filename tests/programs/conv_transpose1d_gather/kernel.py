import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _convt1d(N, Ci, Li, Co, K, stride, pad, dil, threads=128, dtype="float16", accum_dtype="float32"):
    Lo = (Li - 1) * stride - 2 * pad + dil * (K - 1) + 1
    total = N * Co * Lo

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def convt1d(
        X: T.Tensor((N, Ci, Li), dtype),
        W: T.Tensor((Ci, Co, K), dtype),
        Y: T.Tensor((N, Co, Lo), dtype),
    ):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            gid = bx * threads + tx
            s = T.alloc_local((1,), accum_dtype)
            s[0] = 0.0
            if gid < total:
                lo = gid % Lo
                co = (gid // Lo) % Co
                n = gid // (Lo * Co)
                for k in T.serial(K):
                    t = lo + pad - k * dil
                    # only taps that hit the stride lattice
                    if t >= 0:
                        if t % stride == 0:
                            li = t // stride
                            if li < Li:
                                for ci in T.serial(Ci):
                                    s[0] += T.Cast(accum_dtype, X[n, ci, li]) * T.Cast(accum_dtype, W[ci, co, k])
                Y[n, co, lo] = T.Cast(dtype, s[0])

    return convt1d


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation):
        super().__init__()
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.weight = nn.Parameter(torch.empty((in_channels, out_channels, kernel_size)))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self._cache = {}

    def forward(self, x):
        N, Ci, Li = x.shape
        _, Co, K = self.weight.shape
        key = (N, Ci, Li, Co, K)
        if key not in self._cache:
            self._cache[key] = _convt1d(*key, self.stride, self.padding, self.dilation)
        fn = self._cache[key]
        return fn(x.to(torch.float16).contiguous(), self.weight.to(torch.float16).contiguous()).to(x.dtype)
