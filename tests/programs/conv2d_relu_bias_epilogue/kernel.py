import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


# cuDNN does the convolution, this kernel does everything after it.
def _build_relu_bias_kernel(N, C, HW, block_size=256, dtype="float16"):
    total = N * C * HW

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def relu_bias(
        X: T.Tensor((total,), dtype),
        B: T.Tensor((C,), dtype),
        Y: T.Tensor((total,), dtype),
    ):
        with T.Kernel(T.ceildiv(total, block_size), threads=block_size) as bx:
            tx = T.get_thread_binding(0)
            i = bx * block_size + tx
            if i < total:
                c = (i // HW) % C
                Y[i] = T.max(X[i], T.Cast(dtype, 0.0)) + B[c]

    return relu_bias


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self._kernel_cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        y16 = y.to(torch.float16).contiguous()
        N, C, H, W = y16.shape
        key = (N, C, H, W)
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _build_relu_bias_kernel(N, C, H * W)
        out = self._kernel_cache[key](y16.view(-1), self.bias.to(torch.float16).contiguous().view(-1))
        return out.view_as(y16).to(x.dtype)
