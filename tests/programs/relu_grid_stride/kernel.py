"""ReLU as a grid-stride loop: a fixed number of blocks walks over a flat tensor."""
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build_relu_kernel(numel: int, num_blocks: int = 16, block_size: int = 256, dtype: str = "float16"):
    stride = num_blocks * block_size
    iters = (numel + stride - 1) // stride

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def relu_kernel(x: T.Tensor((numel,), dtype), y: T.Tensor((numel,), dtype)):
        with T.Kernel(num_blocks, threads=block_size) as bx:
            tx = T.get_thread_binding(0)
            for it in T.serial(iters):
                idx = it * stride + bx * block_size + tx
                if idx < numel:
                    v = x[idx]
                    y[idx] = T.max(v, T.Cast(dtype, 0))

    return relu_kernel


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._kernel_cache = {}

    def _get_kernel(self, numel: int, dtype: str = "float16"):
        key = (numel, dtype)
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _build_relu_kernel(numel, dtype=dtype)
        return self._kernel_cache[key]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        original_shape = x.shape
        flat = x.to(torch.float16).contiguous().view(-1)
        y = self._get_kernel(flat.numel())(flat)
        return y.view(original_shape).to(x.dtype)
