"""Puzzle 1: copy.

`A` and `B` are vectors of N float32 numbers, and N is a multiple of 64. Write A to B.

A kernel is a grid of blocks. Here there are N / 64 of them, `bx` is the number of the block that runs, and each block
copies 64 neighbouring elements.

Hints
- `for i in T.Parallel(64):` runs its body for each i from 0 to 63, in any order, on the threads of the block.
- Block `bx` begins at element `bx * 64`.
- `T.copy(A[start], tile)` copies as many elements as the tile has. There is no tile yet: a loop is enough.

Judge it:  ./tilepilot run examples/puzzles/p01_copy.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def copy(N, block=64):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N // block, threads=64) as bx:
            pass  # your code, in place of this line

    return kernel


if __name__ == "__main__":
    judge_alone(1, copy)
