import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_sum(outer, reduce, inner, threads_per_block=64, dtype="float16", accum_dtype="float"):
    n_out = outer * inner

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def sum_kernel(
        X: T.Tensor((outer, reduce, inner), dtype),
        Y: T.Tensor((outer, inner), dtype),
    ):
        with T.Kernel(T.ceildiv(n_out, threads_per_block), threads=threads_per_block) as bx:
            tx = T.get_thread_binding(0)
            out_id = bx * threads_per_block + tx
            acc = T.alloc_local((1,), accum_dtype)
            if out_id < n_out:
                o = T.floordiv(out_id, inner)
                i = T.floormod(out_id, inner)
                acc[0] = 0.0
                for r in T.serial(reduce):
                    acc[0] += T.Cast(accum_dtype, X[o, r, i])
                Y[o, i] = T.Cast(dtype, acc[0])

    return sum_kernel


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super(ModelNew, self).__init__()
        self.dim = dim
        self._cache = {}

    def forward(self, x):
        dim = self.dim if self.dim >= 0 else x.dim() + self.dim
        shape = list(x.shape)
        outer, inner = 1, 1
        for s in shape[:dim]:
            outer *= s
        for s in shape[dim + 1 :]:
            inner *= s
        key = (outer, shape[dim], inner)
        if key not in self._cache:
            self._cache[key] = build_sum(*key)
        out = self._cache[key](x.to(torch.float16).contiguous().view(*key))
        shape[dim] = 1
        return out.view(shape).to(x.dtype)
