import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as bx:
        t = T.alloc_shared((32, 64), "float32")
        n = bx * 2
        T.cumsum(t[0:n, 0:64])
