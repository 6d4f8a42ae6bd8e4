import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _suffix_scan(rows, n, dtype="float16", accum_dtype="float"):
    chunk = 16
    chunks = n // chunk

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def suffix(
        X: T.Tensor((rows, n), dtype),
        Mask: T.Tensor((rows, n), dtype),
        Y: T.Tensor((rows, n), dtype),
    ):
        with T.Kernel(rows, threads=chunks) as r:
            tx = T.get_thread_binding(0)
            part = T.alloc_shared((chunks,), accum_dtype)
            run = T.alloc_local((1,), accum_dtype)
            run[0] = 0.0
            for e in T.serial(chunk):
                run[0] += T.Cast(accum_dtype, X[r, tx * chunk + e]) * T.Cast(accum_dtype, Mask[r, tx * chunk + e])
            part[tx] = run[0]
            T.sync_threads()
            # everything right of this thread's chunk
            run[0] = 0.0
            for c in T.serial(chunks):
                if c > tx:
                    run[0] += part[c]
            for e in T.serial(chunk):
                j = tx * chunk + (chunk - 1 - e)
                run[0] += T.Cast(accum_dtype, X[r, j]) * T.Cast(accum_dtype, Mask[r, j])
                Y[r, j] = T.Cast(dtype, run[0])

    return suffix


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self._k = {}

    def forward(self, x, mask):
        rows, n = x.shape
        if (rows, n) not in self._k:
            self._k[(rows, n)] = _suffix_scan(rows, n)
        return self._k[(rows, n)](
            x.to(torch.float16).contiguous(), mask.to(torch.float16).contiguous()
        ).to(x.dtype)
