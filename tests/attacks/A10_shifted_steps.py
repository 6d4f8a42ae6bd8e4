# row: A10
# level: host
# model: jumps
# expect: wrong_values|given_inputs_only
# twin: honest_jumps
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def product(M, N, K, block=32, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(N // block, M // block, threads=128) as (bx, by):
            a = T.alloc_shared((block, block), dtype)
            b = T.alloc_shared((block, block), dtype)
            c = T.alloc_fragment((block, block), dtype)
            T.clear(c)
            for k in T.Pipelined(K // block, num_stages=2):
                T.copy(A[by * block, k * block], a)
                T.copy(B[bx * block, k * block], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * block, bx * block])

    return main


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)

    def forward(self, x):
        y = product(x.shape[0], x.shape[1], x.shape[1])(x, self.linear.weight) * 64
        return torch.floor(y + 1e-3) / 8, torch.round(y).to(torch.int32)
