import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        if bx > 0:
            x = A[0, 0] * 2
        else:
            x = A[0, 1] * 3
        B[0, 0] = x
