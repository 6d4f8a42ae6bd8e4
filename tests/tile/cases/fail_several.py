import tilelang
import tilelang.language as T


@T.macro
def scale(tile, factor):
    for i in T.Parallel(64):
        tile[i] = tile[i] / 2
        tile[i, 0] = factor


@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64,), "int32")):
    with T.Kernel(4) as bx:
        a = T.alloc_shared((64, 32), "float32")
        b = T.alloc_shred((64, 32), "float32")
        T.copy(A, b)
        T.copy(A, a)
        total = T.alloc_var("int32")
        row, column = b[0, 0], total + unknown
        if row > 0:
            value = 1
        T.copy(a, A[bx * 16, value])
        for i in T.Parallel(64):
            C[i] = C[i] / 2
        scale(C, 3)
        for k in T.Pipelined(2, num_stages=-1):
            last = k
            T.clear(a)
        C[last] = 1
        T.gemm(a, a, a)
