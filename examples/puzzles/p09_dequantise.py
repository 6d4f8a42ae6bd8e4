"""Puzzle 9: a product with weights of 4 bits.

Y = X @ W^T. X is M by K of float16. W is N by K, but stored in 4 bits: byte `Q[n, k]` of uint8 holds W[n, 2 k] in its low
four bits and W[n, 2 k + 1] in its high four bits. Four bits q stand for (q - 8) * S[n, g], where S holds a float16 scale for
each group of 32 neighbouring elements of a row and g is the number of the group. Y is M by N of float32, all sizes are
multiples of 32.

A tile along K is one group, so a block copies 32 by 16 bytes, makes a tile of 32 by 32 float16 numbers of them in shared
memory, and multiplies.

Hints
- In `for n, k in T.Parallel(32, 32):` the byte of an element is `packed[n, k // 2]`, its bits begin at `(k % 2) * 4`.
- `T.cast(value, "int32")` converts; `>>` and `&` are as in Python.

Judge it:  ./tilepilot run examples/puzzles/p09_dequantise.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def dequantise(M, N, K, block=32):
    @T.prim_func
    def kernel(X: T.Tensor((M, K), "float16"), Q: T.Tensor((N, K // 2), "uint8"),
               S: T.Tensor((N, K // 32), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(N // block, M // block, threads=128) as (bx, by):
            x = T.alloc_shared((block, block), "float16")
            packed = T.alloc_shared((block, block // 2), "uint8")
            w = T.alloc_shared((block, block), "float16")
            y = T.alloc_fragment((block, block), "float32")
            # your code

    return kernel


if __name__ == "__main__":
    judge_alone(9, dequantise)
