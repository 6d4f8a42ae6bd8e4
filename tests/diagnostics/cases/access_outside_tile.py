import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        t = T.alloc_fragment((4,), "float32")
        u = T.alloc_shared((4, 8), "float32")
        for i in T.Parallel(8):
            t[i] = A[i]
        for i in T.Parallel(8):
            if i < 4:
                u[i, i + 4] = t[i]
        for i in T.Parallel(4):
            B[i] = t[i] + u[i, i + 5]
