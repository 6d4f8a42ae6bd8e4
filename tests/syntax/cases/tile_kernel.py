import torch
import tilelang
import tilelang.language as T


def matmul(M, N, K, block_M=128, block_N=128, block_K=32, dtype="float16", accum_dtype="float"):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            C_local = T.alloc_fragment([block_M, block_N], accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0) if j >= 0 else -C_local[i, j] ** 2
            T.copy(C_local, C[by * block_M : (by + 1) * block_M, bx * block_N:])

    return main


class ModelNew(torch.nn.Module):
    """Calls the kernel."""

    def __init__(self, size: int, *, bias: bool = True):
        super().__init__()
        self.cache = {}
        self.weight = torch.nn.Parameter(torch.randn(size, size))

    def forward(self, x):
        key = (x.shape[0], x.dtype)
        if key not in self.cache:
            self.cache[key] = tilelang.compile(matmul(*x.shape, 64), out_idx=[-1])
        return self.cache[key](x, self.weight)
