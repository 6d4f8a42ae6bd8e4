import tilelang
import tilelang.language as T


@T.macro
def doubled(x):
    x = x * 2
    return x


@T.macro
def increment(x: T.Ref, by=1):
    x += by
    x = x + x


@T.macro
def clear_rows(rows: T.Ref, tile: T.SharedBuffer((8, 8), "float32")):
    T.fill(rows, 0)
    T.copy(tile, rows)


@T.macro
def load_tile(corner, tile):
    T.copy(corner, tile)


@T.prim_func
def main(A: T.Tensor((64, 64), "float32"), C: T.Tensor((8,), "int32")):
    with T.Kernel(8, threads=32) as (bx,):
        tile = T.alloc_shared((8, 8), "float32")
        count = T.alloc_var("int32", init=3)
        C[0] = doubled(count) + count
        increment(count)
        increment(C[count], by=5)
        for i in range(4):
            C[doubled(i)] = doubled(7)
        load_tile(A[bx * 8, count * 8], tile)
        clear_rows(A[bx * 8 : bx * 8 + 8, count : count + 8], tile)
