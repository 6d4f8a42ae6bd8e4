# model: mixed_weights
# expect: verified: as `load_state_dict` would not: `packed`, `folded[\"gain\"]`
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def epilogue(M, N, block_M=16, block_N=32, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        S: T.Tensor((N,), dtype),
        G: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            x = T.alloc_fragment((block_M, block_N), dtype)
            T.copy(X[by * block_M, bx * block_N], x)
            for i, j in T.Parallel(block_M, block_N):
                x[i, j] = T.max(x[i, j] + S[bx * block_N + j], 0.0) * G[bx * block_N + j]
            T.copy(x, Y[by * block_M, bx * block_N])

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features, bias=False)
        self.shift = nn.Parameter(torch.randn(features))
        self.gain = nn.Parameter(torch.ones(features))
        self.register_buffer("mask", torch.tril(torch.ones(features, features)))
        self.register_buffer("packed", torch.cat([self.linear.weight.t(), self.shift[None]]).detach().contiguous())
        self.folded = {"gain": self.gain.detach() * 2.0}

    def forward(self, x):
        self.packed = self.packed.double().float() * 1.0
        self.shift = nn.Parameter(self.shift.detach() * 1.0)
        y = x @ self.packed[:-1]
        return epilogue(x.shape[0], x.shape[1])(y, self.shift, self.folded["gain"] * 0.5)
