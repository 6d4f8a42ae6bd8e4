import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def add(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(N):
                C[i] = A[i] - B[i]

    return main


if __name__ == "__main__":
    a, b = torch.randn(64), torch.randn(64)
    assert torch.equal(add(64)(a, b), a + b)
