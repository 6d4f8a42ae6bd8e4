# A name for what another variable is, bound anew in a loop to something that is not made of it.
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((8, 100), "float16"), B: T.Tensor((8, 100), "float16")):
    with T.Kernel(8, threads=32) as row:
        t = T.get_thread_binding(0)
        column = t
        for i in T.serial(4):
            column = i * 32 + t
            if column < 100:
                B[row, column] = A[row, column]
