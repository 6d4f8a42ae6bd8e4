import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _avg_pool3d_kernel(N, C, D, H, W, k, s, p, block=128, dtype="float16", accum_dtype="float"):
    Do, Ho, Wo = ((n + 2 * p - k) // s + 1 for n in (D, H, W))
    total = N * C * Do * Ho * Wo
    inv = 1.0 / float(k * k * k)

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def avg_pool(x: T.Tensor((N, C, D, H, W), dtype), y: T.Tensor((N, C, Do, Ho, Wo), dtype)):
        with T.Kernel(T.ceildiv(total, block), threads=block) as bx:
            acc = T.alloc_fragment((block,), accum_dtype)
            T.clear(acc)
            for kd, kh, kw in T.grid(k, k, k):
                for t in T.Parallel(block):
                    o = bx * block + t
                    ow = o % Wo
                    oh = (o // Wo) % Ho
                    od = (o // (Wo * Ho)) % Do
                    c = (o // (Wo * Ho * Do)) % C
                    n = o // (Wo * Ho * Do * C)
                    iz = od * s - p + kd
                    iy = oh * s - p + kh
                    ix = ow * s - p + kw
                    if o < total and iz >= 0 and iz < D and iy >= 0 and iy < H and ix >= 0 and ix < W:
                        acc[t] += T.Cast(accum_dtype, x[n, c, iz, iy, ix])
            for t in T.Parallel(block):
                o = bx * block + t
                if o < total:
                    y[
                        o // (Wo * Ho * Do * C),
                        (o // (Wo * Ho * Do)) % C,
                        (o // (Wo * Ho)) % Do,
                        (o // Wo) % Ho,
                        o % Wo,
                    ] = T.Cast(dtype, acc[t] * inv)

    return avg_pool


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = None, padding: int = 0):
        super().__init__()
        self.k = kernel_size
        self.s = stride if stride is not None else kernel_size
        self.p = padding
        self._cache = {}

    def forward(self, x):
        key = tuple(x.shape)
        if key not in self._cache:
            self._cache[key] = _avg_pool3d_kernel(*key, self.k, self.s, self.p)
        return self._cache[key](x.to(torch.float16).contiguous()).to(x.dtype)
