import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def fused_channel_kernel(N, C, HW, scale, pix=64, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def main(X: T.Tensor((N, C, HW), dtype), B: T.Tensor((C,), dtype), Y: T.Tensor((N, C, HW), dtype)):
        with T.Kernel(T.ceildiv(HW, pix), N, threads=128) as (bx, bn):
            xs = T.alloc_fragment((C, pix), accum_dtype)
            mx = T.alloc_fragment((pix,), accum_dtype)
            sm = T.alloc_fragment((pix,), accum_dtype)
            for c, p in T.Parallel(C, pix):
                if bx * pix + p < HW:
                    xs[c, p] = T.Cast(accum_dtype, X[bn, c, bx * pix + p])
                else:
                    xs[c, p] = 0.0
            T.reduce_max(xs, mx, dim=0, clear=True)
            for c, p in T.Parallel(C, pix):
                xs[c, p] = T.exp(xs[c, p] - mx[p])
            T.reduce_sum(xs, sm, dim=0, clear=True)
            for c, p in T.Parallel(C, pix):
                if bx * pix + p < HW:
                    v = (xs[c, p] / sm[p] + T.Cast(accum_dtype, B[c])) * scale
                    Y[bn, c, bx * pix + p] = T.Cast(dtype, T.sigmoid(v))

    return main


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, scaling_factor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.scaling_factor = scaling_factor
        self._fns = {}

    def forward(self, x):
        y = self.conv_transpose(x).to(torch.float16)
        N, C, H, W = y.shape
        fn = self._fns.setdefault((N, C, H, W), None) or fused_channel_kernel(N, C, H * W, self.scaling_factor)
        self._fns[(N, C, H, W)] = fn
        out = fn(y.contiguous().view(N, C, H * W), self.bias.to(torch.float16).view(C).contiguous())
        return out.view(N, C, H, W).to(x.dtype)
