"""Puzzle 2: add, with a tail.

C[i] = A[i] + B[i] for vectors of N float32 numbers. N is any number: the last block has less to do than the others.

The number of blocks is part of the gap: how many blocks of 128 elements does a vector of 1000 need?

Hints
- `T.ceildiv(a, b)` is a / b rounded up.
- Where an index leaves a tensor, a read is 0 and a write is dropped. So the tail needs no `if` here; later puzzles have tails
  for which 0 is the wrong value.

Judge it:  ./tilepilot run examples/puzzles/p02_add.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def add(N, block=128):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=128) as bx:  # how many blocks?
            pass  # your code, in place of this line

    return kernel


if __name__ == "__main__":
    judge_alone(2, add)
