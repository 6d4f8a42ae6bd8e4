import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_scan_kernel(batch, seqlen, d_inner, d_state, threads=32, dtype="float16", accum_dtype="float32"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def selective_scan(
        u: T.Tensor((batch, seqlen, d_inner), dtype),
        delta: T.Tensor((batch, seqlen, d_inner), dtype),
        A: T.Tensor((d_inner, d_state), accum_dtype),
        B: T.Tensor((batch, seqlen, d_state), dtype),
        C: T.Tensor((batch, seqlen, d_state), dtype),
        D: T.Tensor((d_inner,), accum_dtype),
        y: T.Tensor((batch, seqlen, d_inner), dtype),
    ):
        with T.Kernel(T.ceildiv(d_inner, threads), batch, threads=threads) as (bd, b):
            tx = T.get_thread_binding(0)
            d = bd * threads + tx
            state = T.alloc_local((d_state,), accum_dtype)
            out = T.alloc_local((1,), accum_dtype)
            if d < d_inner:
                for n in T.serial(d_state):
                    state[n] = T.float32(0)
                for t in T.serial(seqlen):
                    dt_raw = delta[b, t, d].astype(accum_dtype)
                    dt = T.if_then_else(dt_raw > 20.0, dt_raw, T.log(1.0 + T.exp(dt_raw)))
                    ut = u[b, t, d].astype(accum_dtype)
                    out[0] = D[d] * ut
                    for n in T.serial(d_state):
                        state[n] = T.exp(dt * A[d, n]) * state[n] + dt * ut * B[b, t, n].astype(accum_dtype)
                        out[0] += state[n] * C[b, t, n].astype(accum_dtype)
                    y[b, t, d] = out[0].astype(dtype)

    return selective_scan


class ModelNew(nn.Module):
    def __init__(self, d_inner, d_state):
        super().__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1).float()).repeat(d_inner, 1))
        self.D = nn.Parameter(torch.ones(d_inner))
        self.d_inner = d_inner
        self.d_state = d_state
        self._kernel = {}

    def forward(self, u, delta, B, C):
        batch, seqlen, _ = u.shape
        A = -torch.exp(self.A_log.float())
        key = (batch, seqlen)
        if key not in self._kernel:
            self._kernel[key] = build_scan_kernel(batch, seqlen, self.d_inner, self.d_state)
        return self._kernel[key](
            u.half().contiguous(),
            delta.half().contiguous(),
            A.contiguous(),
            B.half().contiguous(),
            C.half().contiguous(),
            self.D.float(),
        ).to(u.dtype)
