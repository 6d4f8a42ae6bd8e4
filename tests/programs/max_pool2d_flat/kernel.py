import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _maxpool2d(B, C, H, W, K, S, P, D, threads=256, dtype="float16"):
    OH = (H + 2 * P - D * (K - 1) - 1) // S + 1
    OW = (W + 2 * P - D * (K - 1) - 1) // S + 1
    total = B * C * OH * OW

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def maxpool2d(X: T.Tensor((B, C, H, W), dtype), Y: T.Tensor((B, C, OH, OW), dtype)):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            idx = bx * threads + tx
            m = T.alloc_local((1,), dtype)
            if idx < total:
                ow = idx % OW
                t1 = idx // OW
                oh = t1 % OH
                t2 = t1 // OH
                c = t2 % C
                b = t2 // C
                m[0] = T.min_value(dtype)
                for kh in T.serial(K):
                    for kw in T.serial(K):
                        ih = oh * S - P + kh * D
                        iw = ow * S - P + kw * D
                        if ih >= 0 and ih < H and iw >= 0 and iw < W:
                            m[0] = T.max(m[0], X[b, c, ih, iw])
                Y[b, c, oh, ow] = m[0]

    return maxpool2d


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self._kernel_cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = tuple(x.shape)
        if shape not in self._kernel_cache:
            self._kernel_cache[shape] = _maxpool2d(
                *shape, self.kernel_size, self.stride, self.padding, self.dilation
            )
        return self._kernel_cache[shape](x.to(torch.float16).contiguous()).to(x.dtype)
