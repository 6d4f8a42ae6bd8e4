import tilelang
import tilelang.language as T


m = T.dynamic("m")


@T.prim_func
def main(A: T.Tensor((64,), "float32")):
    with T.Kernel(m) as bx:
        T.clear(A)
