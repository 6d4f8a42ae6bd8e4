import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _bag(B, L, V, D, pad, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def bag(
        tokens: T.Tensor((B, L), "int32"),
        table: T.Tensor((V, D), dtype),
        out: T.Tensor((B, D), dtype),
    ):
        with T.Kernel(B, threads=D) as b:
            d = T.get_thread_binding(0)
            s = T.alloc_local((1,), accum_dtype)
            cnt = T.alloc_local((1,), "int32")
            s[0] = 0.0
            cnt[0] = 0
            for l in T.serial(L):
                token = tokens[b, l]
                if token != pad:
                    s[0] += T.Cast(accum_dtype, table[token, d])
                    cnt[0] += 1
            out[b, d] = T.Cast(dtype, s[0] / T.Cast(accum_dtype, T.max(cnt[0], 1)))

    return bag


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim, padding):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dim)
        self.padding = padding
        self._k = {}

    def forward(self, tokens):
        B, L = tokens.shape
        V, D = self.embedding.weight.shape
        if (B, L) not in self._k:
            self._k[(B, L)] = _bag(B, L, V, D, self.padding)
        weight = self.embedding.weight
        return self._k[(B, L)](tokens.int().contiguous(), weight.to(torch.float16).contiguous()).to(weight.dtype)
