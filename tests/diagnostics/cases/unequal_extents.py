import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((32, 64), "float16")
        T.copy(A[0:16, 0:64], a)
