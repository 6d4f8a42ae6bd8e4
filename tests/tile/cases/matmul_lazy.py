# call: matmul(256, 384, 512, transpose=True)
import tilelang
from tilelang import language as T


@tilelang.jit(out_idx=[-1], target="auto", pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def matmul(M, N, K, block=64, transpose=False, dtype=T.float16, accum_dtype=T.float32):
    b_shape = (N, K) if transpose else (K, N)
    tile_shape = (block, 32) if transpose else (32, block)

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(N // block, M // block) as (bx, by):
            A_tile = T.alloc_shared([block, 32], dtype)
            B_tile = T.alloc_shared(tile_shape, dtype)
            C_tile = T.alloc_fragment([block, block], accum_dtype)
            for k in T.Pipelined(0, K // 32, num_stages=2):
                T.copy(A[by * block : (by + 1) * block, k * 32 : k * 32 + 32], A_tile)
                if transpose:
                    T.copy(B[bx * block, k * 32], B_tile)
                else:
                    T.copy(B[k * 32, bx * block], B_tile)
                T.gemm(A_tile, B_tile, C_tile, transpose_B=transpose, policy=T.GemmWarpPolicy.FullRow)
            T.copy(C_tile, C[by * block, bx * block])

    return gemm
