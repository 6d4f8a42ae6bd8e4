"""Solution of puzzle 9. The bytes pass through shared memory once; each thread then takes the four bits that it needs."""
import tilelang
import tilelang.language as T


@tilelang.jit
def dequantise(M, N, K, block=32):
    @T.prim_func
    def kernel(X: T.Tensor((M, K), "float16"), Q: T.Tensor((N, K // 2), "uint8"),
               S: T.Tensor((N, K // 32), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(N // block, M // block, threads=128) as (bx, by):
            x = T.alloc_shared((block, block), "float16")
            packed = T.alloc_shared((block, block // 2), "uint8")
            w = T.alloc_shared((block, block), "float16")
            y = T.alloc_fragment((block, block), "float32")
            T.clear(y)
            for k in T.serial(K // block):
                T.copy(X[by * block, k * block], x)
                T.copy(Q[bx * block, k * (block // 2)], packed)
                for i, j in T.Parallel(block, block):
                    q = (T.cast(packed[i, j // 2], "int32") >> ((j % 2) * 4)) & 15
                    w[i, j] = T.cast(q - 8, "float16") * S[bx * block + i, k]
                T.gemm(x, w, y, transpose_B=True)
            T.copy(y, Y[by * block, bx * block])

    return kernel
