import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        tile = T.alloc_shared((128, 64), "float32")
        tile[0, 64] = 1.0
