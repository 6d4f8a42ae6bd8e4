import torch
import torch.nn as nn
import torch.nn.functional as F
import tilelang
import tilelang.language as T

_kernel_cache = {}


def _min_tanh(N, C, H, W, threads_per_block=128, dtype="float16"):
    pixels = N * H * W

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def min_tanh(X: T.Tensor((N, C, H, W), dtype), Y: T.Tensor((N, 1, H, W), dtype)):
        with T.Kernel(T.ceildiv(pixels, threads_per_block), threads=threads_per_block) as bx:
            tx = T.get_thread_binding(0)
            p = bx * threads_per_block + tx
            if p < pixels:
                n = p // (H * W)
                h = (p // W) % H
                w = p % W
                v = T.alloc_local((1,), "float32")
                v[0] = T.infinity("float32")
                for c in T.serial(C):
                    v[0] = T.min(v[0], T.Cast("float32", X[n, c, h, w]))
                Y[n, 0, h, w] = T.Cast(dtype, T.tanh(T.tanh(v[0])))

    return min_tanh


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        ref = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.weight = nn.Parameter(ref.weight.data.clone())
        self.bias = nn.Parameter(ref.bias.data.clone())

    def forward(self, x):
        y = F.conv2d(x.to(self.weight.dtype), self.weight, self.bias)
        y = y.to(torch.float16).contiguous()
        key = tuple(y.shape)
        if key not in _kernel_cache:
            _kernel_cache[key] = _min_tanh(*key)
        return _kernel_cache[key](y).to(x.dtype)
