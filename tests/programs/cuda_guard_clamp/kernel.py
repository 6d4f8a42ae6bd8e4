import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build(numel, low, high, block_size=256, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def clamp_gate(X: T.Tensor((numel,), dtype), Y: T.Tensor((numel,), dtype)):
        with T.Kernel(T.ceildiv(numel, block_size), threads=block_size) as bx:
            tx = T.get_thread_binding(0)
            i = bx * block_size + tx
            if i < numel:
                v = T.Cast(accum_dtype, X[i])
                c = T.min(T.max(v, T.Cast(accum_dtype, low)), T.Cast(accum_dtype, high))
                Y[i] = T.Cast(dtype, c / (T.Cast(accum_dtype, 1) + T.exp(-v)))

    return clamp_gate


class ModelNew(nn.Module):
    def __init__(self, low, high):
        super().__init__()
        self.low = float(low)
        self.high = float(high)
        self._kernel_cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda, "the kernel needs a CUDA tensor"
        if x.device.type != "cuda":
            raise RuntimeError(f"expected a CUDA tensor, got one on {x.device}")
        device = torch.device("cuda", x.device.index)
        x16 = x.to(device=device, dtype=torch.float16).contiguous()
        key = (x16.numel(), x.device.index)
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _build(x16.numel(), self.low, self.high)
        return self._kernel_cache[key](x16.view(-1)).view(x.shape).to(x.dtype)
