import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def bilinear(N, C, H, W, s, threads=128, dtype="float16", accum_dtype="float32"):
    OH, OW = H * s, W * s
    total = N * C * OH * OW
    ry = (H - 1) / (OH - 1)
    rx = (W - 1) / (OW - 1)

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def upsample(X: T.Tensor((N, C, H, W), dtype), Y: T.Tensor((N, C, OH, OW), dtype)):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            i = bx * threads + tx
            if i < total:
                ox = i % OW
                oy = (i // OW) % OH
                c = (i // (OW * OH)) % C
                n = i // (OW * OH * C)
                fy = T.Cast(accum_dtype, oy) * T.Cast(accum_dtype, ry)
                fx = T.Cast(accum_dtype, ox) * T.Cast(accum_dtype, rx)
                y0 = T.min(T.Cast("int32", T.floor(fy)), H - 1)
                x0 = T.min(T.Cast("int32", T.floor(fx)), W - 1)
                y1 = T.min(y0 + 1, H - 1)
                x1 = T.min(x0 + 1, W - 1)
                wy = fy - T.Cast(accum_dtype, y0)
                wx = fx - T.Cast(accum_dtype, x0)
                top = T.Cast(accum_dtype, X[n, c, y0, x0]) * (1.0 - wx) + T.Cast(accum_dtype, X[n, c, y0, x1]) * wx
                bot = T.Cast(accum_dtype, X[n, c, y1, x0]) * (1.0 - wx) + T.Cast(accum_dtype, X[n, c, y1, x1]) * wx
                Y[n, c, oy, ox] = T.Cast(dtype, top * (1.0 - wy) + bot * wy)

    return upsample


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = int(scale)
        self._cache = {}

    def forward(self, x):
        key = tuple(x.shape)
        if key not in self._cache:
            self._cache[key] = bilinear(*key, self.scale)
        return self._cache[key](x.to(torch.float16).contiguous()).to(x.dtype)
