import math
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _pair(v):
    return v if isinstance(v, tuple) else (v, v)


def _conv2d_kernel(B, C, H, W, O, kh, kw, sh, sw, ph, pw, block_size=128, dtype="float16", accum_dtype="float"):
    OH = (H + 2 * ph - kh) // sh + 1
    OW = (W + 2 * pw - kw) // sw + 1
    num_out = B * O * OH * OW

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def conv2d(
        x: T.Tensor((B, C, H, W), dtype),
        w: T.Tensor((O, C, kh, kw), dtype),
        b: T.Tensor((O,), dtype),
        y: T.Tensor((B, O, OH, OW), dtype),
    ):
        with T.Kernel(T.ceildiv(num_out, block_size), threads=block_size) as block_id:
            thread_id = T.get_thread_binding(0)
            out_idx = block_id * block_size + thread_id
            if out_idx < num_out:
                ow = out_idx % OW
                oh = (out_idx // OW) % OH
                oc = (out_idx // (OW * OH)) % O
                bn = out_idx // (OW * OH * O)
                acc = T.alloc_local((1,), accum_dtype)
                acc[0] = T.Cast(accum_dtype, b[oc])
                for ic in T.serial(C):
                    for r in T.serial(kh):
                        ih = oh * sh + r - ph
                        if ih >= 0 and ih < H:
                            for s in T.serial(kw):
                                iw = ow * sw + s - pw
                                if iw >= 0 and iw < W:
                                    acc[0] += T.Cast(accum_dtype, x[bn, ic, ih, iw]) * T.Cast(
                                        accum_dtype, w[oc, ic, r, s]
                                    )
                y[bn, oc, oh, ow] = T.Cast(dtype, acc[0])

    return conv2d


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.kernel_size = _pair(kernel_size)
        self.stride = _pair(stride)
        self.padding = _pair(padding)
        self.out_channels = out_channels
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, *self.kernel_size))
        self.bias = nn.Parameter(torch.empty(out_channels))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in, _ = nn.init._calculate_fan_in_and_fan_out(self.weight)
        bound = 1.0 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        nn.init.uniform_(self.bias, -bound, bound)
        self._kernels = {}

    def forward(self, x):
        B, C, H, W = x.shape
        key = (B, C, H, W)
        if key not in self._kernels:
            self._kernels[key] = _conv2d_kernel(
                B, C, H, W, self.out_channels, *self.kernel_size, *self.stride, *self.padding
            )
        out = self._kernels[key](
            x.to(torch.float16).contiguous(),
            self.weight.to(torch.float16).contiguous(),
            self.bias.to(torch.float16).contiguous(),
        )
        return out.to(x.dtype)
