import torch
import torch.nn as nn
import tilelang
import tilelang.language as T

VEC = 8


def make_swish(numel, threads=256, vec=VEC, dtype="float16"):
    assert numel % vec == 0

    @tilelang.jit(out_idx=[-1])
    @T.prim_func
    def swish(X: T.Tensor((numel,), dtype), Y: T.Tensor((numel,), dtype)):
        with T.Kernel(T.ceildiv(numel, threads * vec), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            base = (bx * threads + tx) * vec
            x_local = T.alloc_local((vec,), dtype)
            y_local = T.alloc_local((vec,), dtype)
            if base < numel:
                for v in T.vectorized(vec):
                    x_local[v] = X[base + v]
                for v in T.serial(vec):
                    xf = T.Cast("float32", x_local[v])
                    y_local[v] = T.Cast(dtype, xf / (1.0 + T.exp(-xf)))
                for v in T.vectorized(vec):
                    Y[base + v] = y_local[v]

    return swish


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._cache = {}

    def forward(self, x):
        flat = x.to(torch.float16).reshape(-1)
        if flat.numel() not in self._cache:
            self._cache[flat.numel()] = make_swish(flat.numel())
        return self._cache[flat.numel()](flat).reshape(x.shape).to(x.dtype)
