import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
    with T.Kernel(4, threads=256) as row:
        tile = T.alloc_fragment((64,), "float32")
        T.copy(A[row, 0], tile)
        for j in T.Parallel(64):
            tile[j] = tile[j] * 2.0
        T.copy(tile, B[row, 0])
