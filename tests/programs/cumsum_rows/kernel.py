import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build_scan_kernel(rows, cols, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def scan(X: T.Tensor((rows, cols), dtype), Y: T.Tensor((rows, cols), dtype)):
        with T.Kernel(rows, threads=1) as r:
            running = T.alloc_local((1,), accum_dtype)
            running[0] = 0.0
            for c in T.serial(cols):
                running[0] = running[0] + T.Cast(accum_dtype, X[r, c])
                Y[r, c] = T.Cast(dtype, running[0])

    return scan


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self._kernel_cache = {}

    def forward(self, x):
        x16 = x.to(torch.float16).contiguous()
        key = (x16.shape[0], x16.shape[1], str(x16.dtype))
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _build_scan_kernel(key[0], key[1])
        return self._kernel_cache[key](x16).to(x.dtype)
