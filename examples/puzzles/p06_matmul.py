"""Puzzle 6: product of matrices.

C = A @ B. A is M by K and B is K by N, both float16; C is M by N of float32. All sizes are multiples of 32.

A block makes a tile of C of 32 by 32. It walks along K: it copies a tile of A and a tile of B into shared memory, which all
threads of the block see, and adds the product of the two tiles to a fragment.

Hints
- `T.alloc_shared((32, 32), "float16")` is a tile in shared memory.
- `T.gemm(a, b, c)` adds a @ b to c. On a GPU it runs on tensor cores.
- Add up in float32: a fragment of float16 loses digits with each tile.
- The compiler puts in the barriers between the threads that fill shared memory and those that read it.

Judge it:  ./tilepilot run examples/puzzles/p06_matmul.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def matmul(M, N, K, block=32):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // block, M // block, threads=128) as (bx, by):
            pass  # your code, in place of this line

    return kernel


if __name__ == "__main__":
    judge_alone(6, matmul)
