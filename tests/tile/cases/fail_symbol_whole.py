import tilelang
import tilelang.language as T


m = T.dynamic("m")


@T.prim_func
def main(A: T.Tensor((m,), "float32")):
    with T.Kernel(m) as bx:
        t = T.alloc_shared((64,), "float32")
        T.copy(A, t)
