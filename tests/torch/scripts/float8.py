import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def quantize(M, N, dtype):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), S: T.Tensor((M,), "float32"), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=64) as row:
            x = T.alloc_fragment((1, N), "float32")
            T.copy(X[row, 0], x)
            for i, j in T.Parallel(1, N):
                Y[row, j] = T.cast(x[i, j] / S[row], dtype)

    return main


@tilelang.jit(out_idx=[-1])
def product(M, N, K, dtype):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((M, K), dtype)
            b = T.alloc_shared((N, K), dtype)
            c = T.alloc_fragment((M, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    return main


torch.manual_seed(0)
for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
    x = torch.randn(16, 32)
    scale = x.abs().amax(dim=1) / torch.finfo(dtype).max
    y = quantize(16, 32, dtype)(x, scale)
    assert y.dtype == dtype
    assert torch.equal(y.float(), (x / scale[:, None]).to(dtype).float())
    c = product(16, 16, 32, dtype)(y, y)
    assert torch.allclose(c, y.float() @ y.float().t(), rtol=1e-5)
    print(dtype, torch.finfo(dtype).max, y.element_size())
