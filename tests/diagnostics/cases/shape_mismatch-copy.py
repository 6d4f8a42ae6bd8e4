import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128, 64), "float16")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((128, 32), "float16")
        T.copy(A[0:128, 0:48], a)
