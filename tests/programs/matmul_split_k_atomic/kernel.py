import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build(M, N, K, splits=8, block_M=32, block_N=32, block_K=64, dtype="float16", accum_dtype="float"):
    chunk = K // splits

    @tilelang.jit(out_idx=None)
    @T.prim_func
    def splitk(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), accum_dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=128) as (bx, by, bz):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(chunk, block_K), num_stages=2):
                T.copy(A[by * block_M, bz * chunk + ko * block_K], A_shared)
                T.copy(B[bz * chunk + ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                if by * block_M + i < M and bx * block_N + j < N:
                    T.atomic_add(C[by * block_M + i, bx * block_N + j], C_local[i, j])

    return splitk


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = float(scale)
        self._kernels = {}

    def forward(self, A, B):
        M, K = A.shape
        N = B.shape[1]
        if (M, N, K) not in self._kernels:
            self._kernels[(M, N, K)] = _build(M, N, K)
        C = torch.zeros((M, N), dtype=torch.float32, device=A.device)
        self._kernels[(M, N, K)](A.to(torch.float16).contiguous(), B.to(torch.float16).contiguous(), C)
        return C.mul_(self.scale).to(A.dtype)
