import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


@torch.no_grad()
def _as_half(t):
    return t.to(torch.float16).contiguous()


def _row_mean(rows: int, cols: int, block_rows: int = 8, dtype: str = "float16", accum_dtype: str = "float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def row_mean(X: T.Tensor((rows, cols), dtype), Y: T.Tensor((rows,), dtype)):
        with T.Kernel(T.ceildiv(rows, block_rows), threads=128) as bx:
            x_local = T.alloc_fragment((block_rows, cols), accum_dtype)
            s_local = T.alloc_fragment((block_rows,), accum_dtype)
            T.copy(X[bx * block_rows : (bx + 1) * block_rows, 0:cols], x_local)
            T.reduce_sum(x_local, s_local, dim=1, clear=True)
            for i in T.Parallel(block_rows):
                r = bx * block_rows + i
                if r < rows:
                    Y[r] = T.Cast(dtype, s_local[i] / float(cols))

    return row_mean


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim
        self._kernels = {}

    def forward(self, x):
        assert self.dim == x.dim() - 1
        cols = x.shape[-1]
        rows = x.numel() // cols
        if (rows, cols) not in self._kernels:
            self._kernels[(rows, cols)] = _row_mean(rows, cols)
        return self._kernels[(rows, cols)](_as_half(x).view(rows, cols)).view(x.shape[:-1]).to(x.dtype)
