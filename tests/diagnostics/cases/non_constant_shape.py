import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((1024,), "float32"), n: T.int32):
    with T.Kernel(8, threads=128) as bx:
        tile = T.alloc_shared((n, 16), "float32")
