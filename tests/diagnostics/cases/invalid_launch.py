import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128,), "float32")):
    with T.Kernel(1, 2, 3, 4, threads=128) as (a, b, c, d):
        A[0] = 1.0
