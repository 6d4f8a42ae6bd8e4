import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float16")):
    with T.Kernel(1) as bx:
        for i in T.Parallel(64):
            B[i] = T.cast(A[i], "float16", round="up")
            B[i] = T.cast(A[i], "float16", round="rs")
            B[i] = T.cast(A[i], "float16", round="rz", rbits=3)
            B[i] = T.round(A[i], "up")
