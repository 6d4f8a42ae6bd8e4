import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        for i in T.Parallel(64):
            B[i] = T.ieee_add(A[i], 1.0, "rz")
