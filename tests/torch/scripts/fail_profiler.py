import tilelang.language as T
import tilelang


@tilelang.jit(out_idx=[-1])
def add_scalar(N):

    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), s: T.float32, B: T.Tensor((N,), T.float32)):
        with T.Kernel(1, threads=128) as bx:
            for i in T.Parallel(N):
                B[i] = A[i] + s

    return main


add_scalar(64).get_profiler().do_bench()
