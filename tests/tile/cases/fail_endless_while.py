import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        n = T.alloc_var("int32")
        n = 0
        while True:
            n += 1
            if n >= A[0]:
                break
        B[0] = n
