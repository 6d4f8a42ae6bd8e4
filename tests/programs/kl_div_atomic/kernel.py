import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _kl_kernel(B, N, threads=128, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=None)
    @T.prim_func
    def kl(P: T.Tensor((B, N), dtype), Q: T.Tensor((B, N), dtype), Out: T.Tensor((1,), accum_dtype)):
        with T.Kernel(B, threads=threads) as b:
            tx = T.get_thread_binding(0)
            acc = T.alloc_local((1,), accum_dtype)
            block_sum = T.alloc_shared((1,), accum_dtype)
            if tx == 0:
                block_sum[0] = 0.0
            T.tvm_storage_sync("shared")
            acc[0] = 0.0
            for k in T.serial(T.ceildiv(N, threads)):
                j = k * threads + tx
                if j < N:
                    q = T.Cast(accum_dtype, Q[b, j])
                    p = T.Cast(accum_dtype, P[b, j])
                    if q > 0.0:
                        acc[0] += q * (T.log(q) - T.log(p))
            T.atomic_add(block_sum[0], acc[0])
            T.tvm_storage_sync("shared")
            if tx == 0:
                T.atomic_add(Out[0], block_sum[0] / T.Cast(accum_dtype, B))

    return kl


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._cache = {}

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor):
        B, N = predictions.shape
        if (B, N) not in self._cache:
            self._cache[(B, N)] = _kl_kernel(B, N)
        out = torch.zeros((1,), device=predictions.device, dtype=torch.float32)
        self._cache[(B, N)](predictions.to(torch.float16).contiguous(), targets.to(torch.float16).contiguous(), out)
        return out.squeeze(0).to(predictions.dtype)
