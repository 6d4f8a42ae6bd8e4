import tilelang
import tilelang.language as T


@tilelang.jit
def halves():
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), At: T.Tensor((n,), "int32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            T.assume(n % 64 == 0)
            T.assume(True)
            for i in T.Parallel(64):
                place = At[bx * 64 + i]
                T.assume(place >= 0 and place < n)
                B[bx * 64 + i] = A[place] * 0.5

    return main


halves()
