import tilelang
import tilelang.language as T
from tilelang.layout import make_swizzled_layout


def make(n, scale):
    @T.prim_func
    def scaled(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
            t = T.alloc_shared((128,), "float32")
            T.annotate_layout({t: make_swizzled_layout(t)})
            T.copy(A[bx * 128], t)
            for i in T.Parallel(128):
                t[i] = t[i] * scale
            T.copy(t, B[bx * 128])
        with T.Kernel(1) as bx:
            T.fill(B[0:4], scale)

    return scaled


kernel = tilelang.compile(make(1000, 0.5), out_idx=[1], target="auto", execution_backend="cython")
kernels = [tilelang.compile(make(n, n), out_idx=1) for n in (128, 256)]
