# `with T.While(condition):` evaluates its condition before each iteration.
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
    with T.Kernel(8, threads=32) as i:
        state = T.alloc_fragment((1,), "int32")
        state[0] = A[i]
        with T.While(state[0] > 0):
            state[0] = state[0] - 3
        B[i] = state[0]
