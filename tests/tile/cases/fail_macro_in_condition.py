import tilelang
import tilelang.language as T


@T.macro
def positive(x):
    y = T.alloc_var("int32", init=x)
    return y > 0


@T.prim_func
def main(C: T.Tensor((8,), "int32")):
    with T.Kernel(8) as bx:
        if bx > 2 and positive(C[bx]):
            C[bx] = 0
