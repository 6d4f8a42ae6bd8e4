# row: A10
# level: tile
# model: cross_attention
# expect: wrong_values
# twin: honest_cross_attention
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def attend(H, L, S, D, bn=16, dtype="float32"):
    @T.prim_func
    def main(Q: T.Tensor((H, L, D), dtype), K: T.Tensor((H, S, D), dtype), V: T.Tensor((H, S, D), dtype), P: T.Tensor((H,), dtype), Y: T.Tensor((H, L, D), dtype)):
        with T.Kernel(H, threads=64) as bx:
            s = T.alloc_fragment((L, bn), dtype)
            m = T.alloc_fragment((L,), dtype)
            mn = T.alloc_fragment((L,), dtype)
            r = T.alloc_fragment((L,), dtype)
            t = T.alloc_fragment((L,), dtype)
            o = T.alloc_fragment((L, D), dtype)
            T.fill(m, -T.infinity(dtype))
            T.clear(r)
            T.clear(o)
            for b in T.serial(T.ceildiv(S, bn)):
                for i, j in T.Parallel(L, bn):
                    s[i, j] = 0.0
                    for d in T.serial(D):
                        s[i, j] += Q[bx, i, d] * K[bx, T.min(b * bn + j, S - 1), d]
                    s[i, j] = T.if_then_else(b * bn + j < S, s[i, j] / 4.0 - P[bx] * T.abs(i - b * bn - j), -T.infinity(dtype))
                T.copy(m, mn)
                T.reduce_max(s, mn, dim=1, clear=False)
                for i, j in T.Parallel(L, bn):
                    s[i, j] = T.exp(s[i, j] - mn[i])
                T.reduce_sum(s, t, dim=1)
                for i in T.Parallel(L):
                    r[i] = r[i] + t[i]
                for i, d in T.Parallel(L, D):
                    o[i, d] = o[i, d] * T.exp(m[i] - mn[i])
                    for j in T.serial(bn):
                        o[i, d] += s[i, j] * V[bx, T.min(b * bn + j, S - 1), d]
                T.copy(mn, m)
            for i, d in T.Parallel(L, D):
                Y[bx, i, d] = o[i, d] / r[i]

    return main


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slope = nn.Parameter(torch.randn(heads, 1, 1))


    def forward(self, q, k, v):
        b, h, n, d = q.shape
        s = k.shape[2]
        slope = self.slope.view(1, h).expand(b, h).reshape(b * h)
        y = attend(b * h, n, s, d)(q.reshape(b * h, n, d), k.reshape(b * h, s, d), v.reshape(b * h, s, d), slope)
        return y.view(b, h, n, d)
