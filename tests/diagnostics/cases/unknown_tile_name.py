import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((1024,), "float32")):
    with T.Kernel(8, threads=128) as bx:
        A_shared = T.alloc_share((128,), "float32")
