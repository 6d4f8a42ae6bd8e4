import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_pool1d(batch, channels, length, kernel, stride, pad, num_threads=128, dtype="float16"):
    out_len = (length + 2 * pad - kernel) // stride + 1

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def pool(
        inp: T.Tensor((batch, channels, length), dtype),
        out: T.Tensor((batch, channels, out_len), dtype),
    ):
        with T.Kernel(T.ceildiv(out_len, num_threads), channels, batch, threads=num_threads) as (bl, bc, bn):
            tx = T.get_thread_binding(0)
            o = bl * num_threads + tx
            total = T.alloc_local((1,), "float32")
            total[0] = T.Cast("float32", 0.0)
            if o < out_len:
                for k in T.serial(kernel):
                    pos = o * stride + k - pad
                    total[0] += T.if_then_else(
                        T.And(pos >= 0, pos < length), T.Cast("float32", inp[bn, bc, pos]), T.float32(0)
                    )
                out[bn, bc, o] = T.Cast(dtype, total[0] / T.Cast("float32", kernel))

    return pool


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = 1, padding: int = 0):
        super().__init__()
        self.cfg = (kernel_size, stride, padding)
        self._kernels = {}

    def forward(self, x):
        n, c, l = x.shape
        if x.shape not in self._kernels:
            self._kernels[x.shape] = build_pool1d(n, c, l, *self.cfg)
        return self._kernels[x.shape](x.to(torch.float16).contiguous()).to(x.dtype)
