import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


def diag_scale(N, M, block_N=32, block_M=64, dtype="float16"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N, M), dtype), C: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=128) as (bx, by):
            a_frag = T.alloc_fragment((block_N,), dtype)
            T.copy(A[by * block_N], a_frag)
            for i, j in T.Parallel(block_N, block_M):
                r = by * block_N + i
                c = bx * block_M + j
                if r < N:
                    if c < M:
                        C[r, c] = a_frag[i] * B[r, c]

    return main


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self.cached_shape = None
        self.kernel = None

    def forward(self, A, B):
        n, m = B.shape
        if self.cached_shape != (n, m):
            self.kernel = diag_scale(n, m)
            self.cached_shape = (n, m)
        return self.kernel(A.half().contiguous(), B.half().contiguous()).to(B.dtype)
