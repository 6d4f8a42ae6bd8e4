import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _partial_sse(numel, threads=256, items=8, dtype="float16", accum_dtype="float"):
    tile = threads * items
    blocks = (numel + tile - 1) // tile

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def sse(P: T.Tensor((numel,), dtype), Q: T.Tensor((numel,), dtype), S: T.Tensor((blocks, threads), accum_dtype)):
        with T.Kernel(blocks, threads=threads) as bx:
            tx = T.get_thread_binding(0)
            acc = T.alloc_local((1,), accum_dtype)
            acc[0] = 0.0
            for k in T.serial(items):
                i = bx * tile + k * threads + tx
                if i < numel:
                    d = T.Cast(accum_dtype, P[i]) - T.Cast(accum_dtype, Q[i])
                    acc[0] += d * d
            S[bx, tx] = acc[0]

    return sse


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._kernels = {}

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        n = predictions.numel()
        kernel = self._kernels.get(n)
        if kernel is None:
            kernel = _partial_sse(n)
            self._kernels[n] = kernel
        p = predictions.to(torch.float16).contiguous().view(-1)
        t = targets.to(torch.float16).contiguous().view(-1)
        return (kernel(p, t).sum() / n).to(predictions.dtype)
