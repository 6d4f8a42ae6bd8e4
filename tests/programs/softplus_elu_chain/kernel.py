import torch
import torch.nn as nn
import tilelang
import tilelang.language as T
from typing import Optional


def _build_chain_kernel(B, C, D, H, W, alpha, slope, threads=128, dtype="float16", accum_dtype="float"):
    total = B * C * D * H * W
    selu_alpha = 1.6732632423543772848170429916717
    selu_scale = 1.0507009873554804934193349852946

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def chain(X: T.Tensor((B, C, D, H, W), dtype), Y: T.Tensor((B, C, D, H, W), dtype)):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            tid = T.get_thread_binding(0)
            gid = bx * threads + tid
            if gid < total:
                w = gid % W
                h = (gid // W) % H
                d = (gid // (W * H)) % D
                c = (gid // (W * H * D)) % C
                b = gid // (W * H * D * C)

                v0 = T.Cast(accum_dtype, X[b, c, d, h, w])
                # elu
                v1 = T.if_then_else(v0 > 0, v0, alpha * (T.exp(v0) - 1.0))
                # softplus with the usual threshold
                v2 = T.if_then_else(v1 > 20.0, v1, T.log(1.0 + T.exp(v1)))
                # leaky relu
                v3 = v2 - 0.5
                v4 = T.if_then_else(v3 >= 0.0, v3, v3 * slope)
                # selu
                v5 = T.if_then_else(v4 > 0.0, selu_scale * v4, selu_scale * selu_alpha * (T.exp(v4) - 1.0))
                Y[b, c, d, h, w] = T.Cast(dtype, v5)

    return chain


class ModelNew(nn.Module):
    def __init__(self, alpha: float = 1.0, slope: float = 0.2):
        super().__init__()
        self.alpha = alpha
        self.slope = slope
        self._kernel: Optional[object] = None
        self._shape = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x16 = x if x.dtype == torch.float16 else x.to(torch.float16)
        x16 = x16.contiguous()
        if self._kernel is None or self._shape != x16.shape:
            self._kernel = _build_chain_kernel(*x16.shape, alpha=self.alpha, slope=self.slope)
            self._shape = x16.shape
        return self._kernel(x16).to(x.dtype)
