import tilelang
import tilelang.language as T


@T.prim_func
def main(A):
    with T.Kernel(1) as bx:
        T.clear(A)
