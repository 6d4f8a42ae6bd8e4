import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _nll_kernel(B, C, threads=64, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def nll(
        logits: T.Tensor((B, C), dtype),
        target: T.Tensor((B,), "int32"),
        loss: T.Tensor((B,), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(B, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            b = bx * threads + tx
            if b < B:
                mx = T.alloc_local((1,), accum_dtype)
                se = T.alloc_local((1,), accum_dtype)
                mx[0] = T.Cast(accum_dtype, logits[b, 0])
                for c in T.serial(1, C):
                    mx[0] = T.max(mx[0], T.Cast(accum_dtype, logits[b, c]))
                se[0] = T.Cast(accum_dtype, 0)
                for c in T.serial(C):
                    se[0] += T.exp(T.Cast(accum_dtype, logits[b, c]) - mx[0])
                t = target[b]
                loss[b] = T.log(se[0]) + mx[0] - T.Cast(accum_dtype, logits[b, t])

    return nll


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, predictions, targets):
        B, C = predictions.shape
        if (B, C) not in self.cache:
            self.cache[(B, C)] = _nll_kernel(B, C)
        per_row = self.cache[(B, C)](predictions.to(torch.float16).contiguous(), targets.to(torch.int32).contiguous())
        return per_row.mean().to(predictions.dtype)
