import tilelang
import tilelang.language as T


@T.macro
def increment(x: T.Ref):
    x += 1


@T.prim_func
def main(C: T.Tensor((8,), "int32")):
    with T.Kernel(8) as bx:
        increment(bx + 1)
