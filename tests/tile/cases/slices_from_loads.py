import tilelang
import tilelang.language as T


@T.prim_func
def main(X: T.Tensor((256, 64), "float32"), starts: T.Tensor((4,), "int32"), Y: T.Tensor((256, 64), "float32")):
    with T.Kernel(4) as bx:
        tile = T.alloc_shared((16, 64), "float32")
        offset = T.alloc_var("int32", init=starts[bx])
        for r in range(4):
            T.copy(X[offset + r * 16 : offset + (r + 1) * 16, :], tile)
            T.copy(tile, Y[starts[bx] + 16 * r : starts[bx] + 16 * r + 16, 0:64])
        begin = starts[bx]
        end = begin + 16
        T.copy(X[begin:end, :], tile)
