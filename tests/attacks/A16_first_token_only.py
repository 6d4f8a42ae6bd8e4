# row: A16
# level: host
# model: cache_of_keys
# expect: wrong_values
# twin: honest_cache_of_keys
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def rectified(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = T.max(X[bx * block + i, j], 0.0)

    return main


class ModelNew(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.register_buffer("keys", torch.zeros(n, 16, d))
        self.register_buffer("values", torch.zeros(n, 16, d))
        self.register_buffer("pos", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        q, k, v = self.qkv(rectified(16, 64)(x)).chunk(3, -1)
        self.keys.index_copy_(0, self.pos, k[None])
        self.values.index_copy_(0, self.pos, v[None])
        self.pos += 1
        return v.contiguous()
