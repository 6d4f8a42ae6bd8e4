import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128,), "float32")):
    tile = T.alloc_shared((128,), "float32")
    T.copy(A, tile)
