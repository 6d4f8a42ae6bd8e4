import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def dw_conv(N, C, H, W, K, stride, padding, tile_h=8, tile_w=32, dtype="float16", accum_dtype="float"):
    OH = (H + 2 * padding - K) // stride + 1
    OW = (W + 2 * padding - K) // stride + 1

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def depthwise(
        x: T.Tensor((N, C, H, W), dtype),
        w: T.Tensor((C, 1, K, K), dtype),
        y: T.Tensor((N, C, OH, OW), dtype),
    ):
        with T.Kernel(T.ceildiv(OW, tile_w), T.ceildiv(OH, tile_h), N * C, threads=(tile_w, tile_h)) as (bx, by, bz):
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            n = bz // C
            c = bz % C
            ox = bx * tile_w + tx
            oy = by * tile_h + ty
            # filter of this channel in shared memory
            filt = T.alloc_shared((K, K), accum_dtype)
            if tx < K and ty < K:
                filt[ty, tx] = T.Cast(accum_dtype, w[c, 0, ty, tx])
            T.tvm_storage_sync("shared")
            acc = T.alloc_local((1,), accum_dtype)
            acc[0] = 0.0
            if ox < OW and oy < OH:
                for ky in T.unroll(K):
                    for kx in T.unroll(K):
                        iy = oy * stride + ky - padding
                        ix = ox * stride + kx - padding
                        if iy >= 0 and iy < H and ix >= 0 and ix < W:
                            acc[0] += T.Cast(accum_dtype, x[n, c, iy, ix]) * filt[ky, kx]
                y[n, c, oy, ox] = T.Cast(dtype, acc[0])

    return depthwise


class ModelNew(nn.Module):
    def __init__(self, in_channels, kernel_size, stride=1, padding=0):
        super().__init__()
        self.K = kernel_size
        self.stride = stride
        self.padding = padding
        self.weight = nn.Parameter(torch.empty(in_channels, 1, kernel_size, kernel_size))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self._cache = {}

    def forward(self, x):
        if x.shape not in self._cache:
            self._cache[x.shape] = dw_conv(*x.shape, self.K, self.stride, self.padding)
        return self._cache[x.shape](
            x.to(torch.float16).contiguous(), self.weight.to(torch.float16).contiguous()
        ).to(x.dtype)
