import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 128), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((64, 128), "float32")
        c = T.alloc_fragment((128, 128), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
