import torch
import torch.nn as nn
import torch.nn.functional as F
import tilelang
import tilelang.language as T


def _build_epilogue(
    B, C, D, H, W, min_value, divisor, threads_per_block=256, dtype="float16", accum_dtype="float"
):
    numel = B * C * D * H * W
    chan = D * H * W
    inv_div = 1.0 / divisor

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def epilogue(
        X: T.Tensor((B, C, D, H, W), dtype),
        S: T.Tensor((C,), dtype),
        Y: T.Tensor((B, C, D, H, W), dtype),
    ):
        with T.Kernel(T.ceildiv(numel, threads_per_block), threads=threads_per_block) as bx:
            tx = T.get_thread_binding(0)
            idx = bx * threads_per_block + tx
            if idx < numel:
                b = idx // (C * chan)
                r0 = idx - b * (C * chan)
                c = r0 // chan
                r1 = r0 - c * chan
                d = r1 // (H * W)
                r2 = r1 - d * (H * W)
                h = r2 // W
                w = r2 - h * W
                v = T.max(T.Cast(accum_dtype, X[b, c, d, h, w]), T.Cast(accum_dtype, min_value))
                u = v * T.Cast(accum_dtype, inv_div) + T.Cast(accum_dtype, S[c])
                g = 0.5 * u * (1.0 + T.erf(u * 0.7071067811865476))
                Y[b, c, d, h, w] = T.Cast(dtype, g)

    return epilogue


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, min_value, divisor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.min_value = float(min_value)
        self.divisor = float(divisor)
        self.sum_tensor = nn.Parameter(torch.randn(out_channels, 1, 1, 1))
        self._kernel_cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.conv_transpose3d(
            x,
            self.conv_transpose.weight,
            self.conv_transpose.bias,
            stride=self.conv_transpose.stride,
            padding=self.conv_transpose.padding,
        )
        y16 = y.to(torch.float16).contiguous()
        key = (*y16.shape, "float16")
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _build_epilogue(*y16.shape, self.min_value, self.divisor)
        return self._kernel_cache[key](y16, self.sum_tensor.half().flatten()).to(x.dtype)
