import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _log_softmax_rows(batch, dim, dtype="float16", accum="float32"):
    # Simple version: a single thread walks a row three times.
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def log_softmax(X: T.Tensor((batch, dim), dtype), Y: T.Tensor((batch, dim), dtype)):
        with T.Kernel(batch, threads=1) as b:
            m = T.alloc_local((1,), accum)
            s = T.alloc_local((1,), accum)
            m[0] = T.min_value(accum)
            s[0] = T.float32(0)
            for j in T.serial(dim):
                m[0] = T.max(m[0], T.Cast(accum, X[b, j]))
            for j in T.serial(dim):
                s[0] += T.exp(T.Cast(accum, X[b, j]) - m[0])
            lse = T.log(s[0]) + m[0]
            for j in T.serial(dim):
                Y[b, j] = T.Cast(dtype, T.Cast(accum, X[b, j]) - lse)

    return log_softmax


class ModelNew(nn.Module):
    def __init__(self, dim=1):
        super().__init__()
        self.dim = dim
        self.kernels = {}

    def forward(self, x):
        moved = x.transpose(self.dim, -1) if self.dim not in (-1, x.dim() - 1) else x
        shape = moved.shape
        flat = moved.to(torch.float16).contiguous().view(-1, shape[-1])
        if tuple(flat.shape) not in self.kernels:
            self.kernels[tuple(flat.shape)] = _log_softmax_rows(flat.shape[0], flat.shape[1])
        y = self.kernels[tuple(flat.shape)](flat).view(shape)
        if self.dim not in (-1, x.dim() - 1):
            y = y.transpose(self.dim, -1)
        return y.to(x.dtype)
