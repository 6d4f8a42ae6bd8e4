# call: scale.compile(N=64, M=32, block=16)
import tilelang
import tilelang.language as T


@tilelang.jit
def scale(A, B, block=8, factor=2):
    M, N = T.const("M, N")
    C = T.empty((M, N), "float32")
    A: T.Tensor[[M, N], "float32"]
    B: T.Tensor[[N], "float32"]
    with T.Kernel(T.ceildiv(M, block)) as bx:
        for i, j in T.Parallel(block, N):
            C[bx * block + i, j] = A[bx * block + i, j] * factor + B[j]
    return C
