import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        T.annotate_min_blocks_per_sm(2)
        A[0] = 1.0
