import tilelang
import tilelang.language as T


@T.prim_func
def main(p: T.ptr, B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        A = T.make_tensor(p, (B[0], 64), "float32")
