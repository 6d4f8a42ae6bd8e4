# call: scale.compile(N=64, block_M=16)
import tilelang
import tilelang.language as T


@tilelang.jit
def scale(A, block=8):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    with T.Kernel(T.ceildiv(N, block)) as bx:
        T.fill(A[bx * block : bx * block + block], 1)
