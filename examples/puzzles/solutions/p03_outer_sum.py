"""Solution of puzzle 3. `bx` is along the columns, so it belongs to the second index."""
import tilelang
import tilelang.language as T


@tilelang.jit
def outer_sum(M, N, block=32):
    @T.prim_func
    def kernel(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            for i, j in T.Parallel(block, block):
                C[by * block + i, bx * block + j] = A[by * block + i] + B[bx * block + j]

    return kernel
