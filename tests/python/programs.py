"""Tile programs that several tests call."""

import tilepilot.tilelang.language as T
from tilepilot import tilelang


@tilelang.jit(out_idx=[-1])
def scaled(M, N, factor, dtype="float32"):
    @T.prim_func
    def scale(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
            for i, j in T.Parallel(4, N):
                B[bx * 4 + i, j] = A[bx * 4 + i, j] * factor

    return scale


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M=32, block_N=32, block_K=32, dtype="float32"):
    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block_M, bx * block_N])

    return gemm


@tilelang.jit
def added(A, B):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    B: T.Tensor[[M, N], T.float32]
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, 8), threads=64) as bx:
        for i, j in T.Parallel(8, N):
            C[bx * 8 + i, j] = A[bx * 8 + i, j] + B[bx * 8 + i, j]
    return C


def dynamic_scale():
    m = T.dynamic("m")

    @T.prim_func
    def scale_rows(A: T.Tensor((m, 8), "float32"), B: T.Tensor((m, 8), "float32"), factor: T.float32):
        with T.Kernel(T.ceildiv(m, 4), threads=32) as bx:
            for i, j in T.Parallel(4, 8):
                if bx * 4 + i < m:
                    B[bx * 4 + i, j] = A[bx * 4 + i, j] * factor

    return tilelang.compile(scale_rows, out_idx=[1])
