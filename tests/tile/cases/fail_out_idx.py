import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=3)
@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1) as bx:
        T.copy(A, B)
