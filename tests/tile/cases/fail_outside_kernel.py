import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32")):
    t = T.alloc_shared((64,), "float32")
    with T.Kernel(1) as bx:
        T.copy(A, t)
