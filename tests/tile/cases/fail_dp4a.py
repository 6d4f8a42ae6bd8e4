import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_local((4,), "int32")
        c = T.alloc_local((1,), "int32")
        T.dp4a(a, a, c)
