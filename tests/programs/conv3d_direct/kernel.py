import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_conv3d(N, Ci, D, H, W, Co, K, S, P, threads_per_block=256, dtype="float16", accum_dtype="float"):
    Do = (D + 2 * P - K) // S + 1
    Ho = (H + 2 * P - K) // S + 1
    Wo = (W + 2 * P - K) // S + 1
    plane = Ho * Wo
    volume = Do * plane

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def conv3d_kernel(
        X: T.Tensor((N, Ci, D, H, W), dtype),
        Wt: T.Tensor((Co, Ci, K, K, K), dtype),
        Bias: T.Tensor((Co,), accum_dtype),
        Y: T.Tensor((N, Co, Do, Ho, Wo), dtype),
    ):
        with T.Kernel(T.ceildiv(volume, threads_per_block), Co, N, threads=threads_per_block) as (bv, co, n):
            tid = T.get_thread_binding(0)
            v = bv * threads_per_block + tid
            od = v // plane
            oh = (v % plane) // Wo
            ow = v % Wo
            acc = T.alloc_local((1,), accum_dtype)
            acc[0] = Bias[co]
            if v < volume:
                for ci in T.serial(Ci):
                    for kz, ky, kx in T.grid(K, K, K):
                        iz = od * S + kz - P
                        iy = oh * S + ky - P
                        ix = ow * S + kx - P
                        if (0 <= iz) and (iz < D) and (0 <= iy) and (iy < H) and (0 <= ix) and (ix < W):
                            acc[0] += T.Cast(accum_dtype, X[n, ci, iz, iy, ix]) * T.Cast(
                                accum_dtype, Wt[co, ci, kz, ky, kx]
                            )
                Y[n, co, od, oh, ow] = T.Cast(dtype, acc[0])

    return conv3d_kernel


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0):
        super().__init__()
        # keep a reference layer so that initialisation matches
        conv = nn.Conv3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.weight = nn.Parameter(conv.weight.detach().clone())
        self.bias = nn.Parameter(conv.bias.detach().clone())
        self.params = dict(K=kernel_size, S=stride, P=padding)
        self._cache = {}

    def forward(self, x):
        shape = tuple(x.shape)
        if shape not in self._cache:
            self._cache[shape] = build_conv3d(*shape, Co=self.weight.size(0), **self.params)
        return self._cache[shape](
            x.to(torch.float16).contiguous(), self.weight.to(torch.float16).contiguous(), self.bias.to(torch.float32)
        ).to(x.dtype)
