import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float16")):
    with T.Kernel(16, threads=16) as bx:
        part = T.alloc_local((4,), "float32")
        part[0:4] = A[bx, 8:12]
        for k in T.serial(4):
            B[4 * k : 4 * k + 4, bx] = part[:]
        B[bx, 0:2] = 1
        for i in T.Parallel(64):
            T.fill(B[bx, i], 2)
