# row: A13
# level: host
# model: causal_scores
# expect: given_inputs_only
# twin: honest_causal_scores
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def added(M, N, block=8, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = A[bx * block + i, j] + B[bx * block + i, j]

    return main


class ModelNew(nn.Module):
    def forward(self, q, k, bias):
        s = added(64, 64)(q @ k.t(), bias)
        mask = torch.ones(s.shape, dtype=torch.bool, device=s.device).triu(1)
        return s.masked_fill(mask, float("-inf"))
