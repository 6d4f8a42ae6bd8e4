import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((1000,), "float32"), B: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        B[0] = sum([A[i] for i in range(1000)])
