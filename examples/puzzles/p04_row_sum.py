"""Puzzle 4: sum of rows.

B[i] = A[i, 0] + A[i, 1] + ... + A[i, N - 1]. A has M rows and N columns of float16, B has M numbers of float32. Rows are
longer than a tile of 128 columns, so a block walks along its 8 rows and adds up tile by tile.

The sum of many float16 numbers does not fit float16: take float32 for what you add up.

Hints
- `T.alloc_fragment((8, 128), "float32")` is a tile in the registers of the block's threads.
- `T.copy(A[row, column], tile)` copies a tile and converts; outside A it reads 0.
- `for k in T.serial(n):` is a loop whose iterations run one after the other.
- `T.reduce_sum(tile, sums, dim=1)` sums each row of a tile into a fragment of 8 elements. With `clear=False` it adds to what
  the fragment holds; `T.clear(sums)` sets it to 0.

Judge it:  ./tilepilot run examples/puzzles/p04_row_sum.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def row_sum(M, N, rows=8, block=128):
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float16"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
            tile = T.alloc_fragment((rows, block), "float32")
            sums = T.alloc_fragment((rows,), "float32")
            # your code: walk along the rows, then write `sums` to B

    return kernel


if __name__ == "__main__":
    judge_alone(4, row_sum)
