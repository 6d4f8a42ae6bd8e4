import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float8_e4m3fn"), B: T.Tensor((64,), "float8_e5m2"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        for i in T.Parallel(64):
            C[i] = A[i] + B[i]
