"""A tile program as a script: `tilepilot run examples/scripts/matmul.py` multiplies and checks;
`tilepilot tune examples/scripts/matmul.py --call "matmul(512, 512, 512)"` measures other tile sizes."""
import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M=32, block_N=32, block_K=32, dtype="float32"):
    @T.prim_func
    def matmul_kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), dtype)
            b = T.alloc_shared((block_K, block_N), dtype)
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block_M, bx * block_N])

    return matmul_kernel


def main(M=512, N=512, K=512):
    a, b = torch.randn(M, K), torch.randn(K, N)
    torch.testing.assert_close(matmul(M, N, K)(a, b), a @ b, rtol=1e-3, atol=1e-3)
    print(f"{M} x {N} x {K}: right")


if __name__ == "__main__":
    main()
