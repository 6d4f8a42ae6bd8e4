import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float32")
        T.copy(A, a)
        for k in T.Pipelined(8, num_stages=3):
            for i, j in T.Parallel(64, 64):
                a[i, j] = a[i, j] + 1.0
        T.copy(a, B)
