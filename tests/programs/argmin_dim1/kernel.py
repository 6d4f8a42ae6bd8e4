import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def make_argmin_kernel(B, R, C, BLOCK=128, in_dtype="float16", idx_dtype="int32"):
    TOTAL = B * C

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def argmin_kernel(x: T.Tensor((B, R, C), in_dtype), out: T.Tensor((B, C), idx_dtype)):
        with T.Kernel(T.ceildiv(TOTAL, BLOCK), threads=BLOCK) as bx:
            tx = T.get_thread_binding(0)
            flat = bx * BLOCK + tx
            if flat < TOTAL:
                b = flat // C
                c = flat - b * C
                cur = T.alloc_local((1,), "float32")
                pos = T.alloc_local((1,), idx_dtype)
                cur[0] = T.max_value("float32")
                pos[0] = T.int32(0)
                for r in T.serial(R):
                    v = T.Cast("float32", x[b, r, c])
                    pos[0] = T.if_then_else(v < cur[0], r, pos[0])
                    cur[0] = T.min(v, cur[0])
                out[b, c] = pos[0]

    return argmin_kernel


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim
        self.kernels = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # bring the reduced dimension to the middle of a (B, R, C) view
        pre = x.shape[: self.dim]
        post = x.shape[self.dim + 1 :]
        R = x.shape[self.dim]
        B = int(torch.Size(pre).numel())
        C = int(torch.Size(post).numel())
        if (B, R, C) not in self.kernels:
            self.kernels[(B, R, C)] = make_argmin_kernel(B, R, C)
        out = self.kernels[(B, R, C)](x.to(torch.float16).contiguous().view(B, R, C))
        return out.long().view(*pre, *post)
