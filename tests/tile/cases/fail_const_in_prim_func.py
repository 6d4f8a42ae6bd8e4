import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32")):
    N = T.const("N")
    with T.Kernel(N) as bx:
        T.clear(A)
