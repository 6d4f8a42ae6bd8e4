import tilelang.language as T

m = T.dynamic("m")
rows, cols = T.symbolic("rows, cols")


@T.prim_func
def main(
    A: T.Tensor((4, 64, 64), "float32"),
    B: T.Buffer((m, 64), "float16"),
    C: T.Tensor((rows, cols), "float16"),
    D: T.StridedTensor((8, 8), (16, 1), "float32"),
):
    with T.Kernel(T.ceildiv(m, 32), 2, threads=(32, 4)) as (bx, by):
        tile = T.alloc_shared((32, 64), "float32")
        cube = T.alloc_shared((1, 32, 64), "float16", scope="shared")
        vector = T.alloc_fragment([64], "float32")
        column = T.alloc_fragment((32, 1), "float32")
        y = bx * 32
        T.copy(A[by, y, 0], tile)
        T.copy(A[by, y : y + 32, :], tile)
        T.copy(A[by, y : (bx + 1) * 32, 0:64], cube)
        T.copy(tile[3, :], vector)
        T.copy(vector, tile[-1, 0:64])
        T.copy(B[y, 0], cube, disable_tma=True, coalesced_width=4)
        T.copy(tile, B[y : y + 32, 0:64])
        T.copy(A[0, :-32, 32:], tile[0:32, 0:32])
        T.fill(tile[0:4, 0:8], 2)
        tile[0, 0:4] = 7
        T.clear(cube)
        T.reduce_sum(tile, column, dim=1)
        T.reduce_max(tile, vector, dim=0, clear=False)
        T.reduce_absmax(tile, column)
        T.reduce(tile, vector, "min", 0)
        T.copy(C[0:8, 0:8], D)
