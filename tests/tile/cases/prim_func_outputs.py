# call: halves(64)
import tilelang
import tilelang.language as T


@tilelang.jit
def halves(N, dtype="float32"):
    @T.prim_func
    def main(A, n: T.int32, B):
        B: T.Tensor((N,), dtype)
        A: T.Tensor((N,), dtype)
        low = T.empty((N // 2,), dtype)
        high = T.empty((N // 2,), dtype)
        with T.Kernel(threads=32):
            for i in T.Parallel(N // 2):
                low[i] = A[i] + B[i]
                high[i] = A[N // 2 + i] + n
        return high, low

    return main
