import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3])
def double(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            for i in T.Parallel(n):
                B[i] = A[i] * 2.0

    return main


double(128)
