import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def cumprod_kernel(B, N, threads=32, dtype="float16", accum_dtype="float32"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def main(x: T.Tensor((B, N), dtype), y: T.Tensor((B, N), dtype)):
        with T.Kernel(T.ceildiv(B, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            b = bx * threads + tx
            p = T.alloc_local((1,), accum_dtype)
            if b < B:
                p[0] = T.float32(1.0)
                for i in range(N):
                    p[0] *= T.Cast(accum_dtype, x[b, i])
                    y[b, i] = T.Cast(dtype, p[0])

    return main


class ModelNew(nn.Module):
    def __init__(self, dim):
        super(ModelNew, self).__init__()
        self.dim = dim
        self.cache = {}

    def forward(self, x):
        need_transpose = self.dim == 0
        inp = x.t() if need_transpose else x
        inp = inp.to(torch.float16).contiguous()
        B, N = inp.shape
        if (B, N) not in self.cache:
            self.cache[(B, N)] = cumprod_kernel(B, N)
        out = self.cache[(B, N)](inp)
        out = out.t().contiguous() if need_transpose else out
        return out.to(x.dtype)
