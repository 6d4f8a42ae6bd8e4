import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128,), "float32"), n: T.int32):
    with T.Kernel(1, threads=128) as bx:
        for k in T.Pipelined(8, num_stages=n):
            A[k] = 1.0
