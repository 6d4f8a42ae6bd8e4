import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "int4"), B: T.Tensor((64,), "int4")):
    with T.Kernel(1, threads=128) as bx:
        t = T.alloc_fragment((64, 64), "int4")
        sums = T.alloc_fragment((64,), "int4")
        T.copy(A, t)
        T.reduce_sum(t, sums, dim=1)
