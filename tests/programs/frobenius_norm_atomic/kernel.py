import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _sum_squares(numel, threads=256, per_thread=8, dtype="float16", accum_dtype="float"):
    chunk = threads * per_thread

    @tilelang.jit(out_idx=None)
    @T.prim_func
    def sum_squares(X: T.Tensor((numel,), dtype), S: T.Tensor((1,), accum_dtype)):
        with T.Kernel(T.ceildiv(numel, chunk), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            acc = T.alloc_local((1,), accum_dtype)
            acc[0] = 0
            for i in T.serial(per_thread):
                idx = bx * chunk + i * threads + tx
                if idx < numel:
                    acc[0] += T.Cast(accum_dtype, X[idx]) * T.Cast(accum_dtype, X[idx])
            T.atomic_add(S[0], acc[0])

    return sum_squares


def _divide(numel, block=1024, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def divide(X: T.Tensor((numel,), dtype), S: T.Tensor((1,), accum_dtype), Y: T.Tensor((numel,), dtype)):
        with T.Kernel(T.ceildiv(numel, block), threads=256) as bx:
            for i in T.Parallel(block):
                if bx * block + i < numel:
                    Y[bx * block + i] = T.Cast(dtype, T.Cast(accum_dtype, X[bx * block + i]) * T.rsqrt(S[0]))

    return divide


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._cache = {}

    def forward(self, x):
        flat = x.to(torch.float16).contiguous().view(-1)
        n = flat.numel()
        if n not in self._cache:
            self._cache[n] = (_sum_squares(n), _divide(n))
        reduce_kernel, scale_kernel = self._cache[n]
        total = torch.zeros(1, dtype=torch.float32, device=x.device)
        reduce_kernel(flat, total)
        return scale_kernel(flat, total).view_as(x).to(x.dtype)
