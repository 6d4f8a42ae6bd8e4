import torch
import torch.nn as nn
import tilelang
import tilelang.language as T
import math

INV_SQRT2 = 1.0 / math.sqrt(2.0)


def gelu_kernel(n_elem, threads_per_block=128, elems_per_thread=4, dtype="float16", compute_dtype="float"):
    tile = threads_per_block * elems_per_thread

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def gelu(X: T.Tensor((n_elem,), dtype), Y: T.Tensor((n_elem,), dtype)):
        with T.Kernel(T.ceildiv(n_elem, tile), threads=threads_per_block) as bx:
            tx = T.get_thread_binding(0)
            for e in T.serial(elems_per_thread):
                pos = bx * tile + e * threads_per_block + tx
                if pos < n_elem:
                    val = T.Cast(compute_dtype, X[pos])
                    cdf = T.Cast(compute_dtype, 0.5) * (T.Cast(compute_dtype, 1.0) + T.erf(val * INV_SQRT2))
                    Y[pos] = T.Cast(dtype, val * cdf)

    return gelu


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self.compiled = {}

    def forward(self, x):
        x16 = x.to(torch.float16).contiguous()
        n = x16.numel()
        fn = self.compiled.get(n, None)
        if fn is None:
            fn = self.compiled[n] = gelu_kernel(n)
        return fn(x16.flatten()).view_as(x).to(x.dtype)
