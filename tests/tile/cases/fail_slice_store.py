import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        B[0, 0:4] = A[0, 0:8]
        B[0, 0:4] = A
        B[0:2, 0:4] = A[0:2, 0:4]
