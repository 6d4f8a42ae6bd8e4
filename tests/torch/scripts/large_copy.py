# Tensors beyond the caches are written past them, in every element type.
import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def copy(M, N, dtype):

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
            tile = T.alloc_fragment((64, N), dtype)
            T.copy(A[bx * 64, 0], tile)
            T.copy(tile, B[bx * 64, 0])

    return main


for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int8):
    x = torch.randint(-100, 100, (4096, 5000)).to(dtype)
    print(dtype, torch.equal(copy(4096, 5000, str(dtype).split(".")[1])(x), x))
