"""Puzzle 3: outer sum.

C[i, j] = A[i] + B[j]. A has M numbers, B has N, C has M rows and N columns; all are float32, and neither size is a
multiple of 32.

The grid has two axes now. A block makes a tile of 32 rows and 32 columns of C: `bx` counts tiles along the columns, `by`
along the rows.

Hints
- The extents of the grid come in the order of `bx` and `by`.
- `for i, j in T.Parallel(32, 32):` runs over a tile.

Judge it:  ./tilepilot run examples/puzzles/p03_outer_sum.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def outer_sum(M, N, block=32):
    @T.prim_func
    def kernel(A: T.Tensor((M,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, 1, threads=128) as (bx, by):  # how many blocks?
            pass  # your code, in place of this line

    return kernel


if __name__ == "__main__":
    judge_alone(3, outer_sum)
