"""Puzzle 5: softmax of long rows.

B[i, j] = exp(A[i, j]) / (the sum of exp(A[i, k]) over all k). A and B are float32 with M rows and N columns, a row is
longer than a tile, and values are so large that exp(A) overflows.

exp(x - m) / sum(exp(x - m)) is the same for every m, and does not overflow where m is the maximum of the row. The online
form finds maximum and sum in one walk: where a tile brings a larger maximum, the sum so far is multiplied by
exp(old maximum - new maximum). A second walk writes the results.

Hints
- `T.fill(highest, -T.infinity("float32"))` sets a fragment; `T.reduce_max(tile, highest, dim=1, clear=False)` combines with it.
- The last tile is not full, and 0 is the wrong value for what lies beside it: a row may be negative everywhere.
  `T.if_then_else(condition, a, b)` chooses.
- `T.copy(old, new)` copies fragments, too.

Judge it:  ./tilepilot run examples/puzzles/p05_softmax.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def softmax(M, N, rows=8, block=64):
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
            tile = T.alloc_fragment((rows, block), "float32")
            highest = T.alloc_fragment((rows,), "float32")
            before = T.alloc_fragment((rows,), "float32")  # `highest` before this tile
            total = T.alloc_fragment((rows,), "float32")
            # your code

    return kernel


if __name__ == "__main__":
    judge_alone(5, softmax)
