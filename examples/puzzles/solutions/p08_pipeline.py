"""Solution of puzzle 8. At the wait of step k the two youngest groups are the copies of step k + 1. The last step starts no
copies, so it waits for all."""
import tilelang
import tilelang.language as T


@tilelang.jit
def pipeline(M, N, K, block=32):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // block, M // block, threads=128) as (bx, by):
            a = T.alloc_shared((2, block, block), "float16")
            b = T.alloc_shared((2, block, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            steps = K // block
            T.clear(c)
            T.async_copy(A[by * block, 0], a[0, :, :])
            T.async_copy(B[0, bx * block], b[0, :, :])
            for k in T.serial(steps):
                if k + 1 < steps:
                    T.async_copy(A[by * block, (k + 1) * block], a[(k + 1) % 2, :, :])
                    T.async_copy(B[(k + 1) * block, bx * block], b[(k + 1) % 2, :, :])
                    T.ptx_wait_group(2)
                else:
                    T.ptx_wait_group(0)
                T.gemm(a[k % 2, :, :], b[k % 2, :, :], c)
            T.copy(c, C[by * block, bx * block])

    return kernel
