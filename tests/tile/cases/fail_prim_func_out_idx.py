# call: halves(64)
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[0])
def halves(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        low = T.empty((N,), "float32")
        with T.Kernel(1) as bx:
            T.copy(A, low)
        return low

    return main
