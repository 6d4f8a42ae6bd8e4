import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((128, 32), "float16")
        b = T.alloc_shared((64, 32), "float16")
        c = T.alloc_fragment((128, 64), "float32")
        T.gemm(a, b, c)
