import tilelang
import tilelang.language as T


@tilelang.jit(target="cuda", pass_configs={"tl.disable_tma_lower": True, "tl.fast_math": True}, compile_flags=["-O3"])
@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        T.use_swizzle(8)
        T.disable_warp_group_reg_alloc()
        T.annotate_consumer_reg_alloc(240)
        tile = T.alloc_shared((64, 64), "float32")
        T.clear(tile, annotations=None)
        for k in T.Pipelined(4, num_stages=2, order=[0, 1], stage=[0, 1]):
            T.copy(A, tile, eviction_policy="evict_first")
            T.copy(A, tile, eviction_policy="evict_last")
        for i in T.Serial(2):
            T.use_swizzle(8)
        for i, j in T.Parallel(64, 64, coalesced_width=4):
            B[i, j] = tile[i, j]
        for i in T.parallel(64):
            B[i, 0] = 0
