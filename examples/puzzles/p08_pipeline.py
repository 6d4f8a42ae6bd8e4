"""Puzzle 8: a pipelined product.

The product of puzzle 6, where the tiles of the next step are on their way while the tiles of this step are multiplied. In
daily work `for k in T.Pipelined(steps, num_stages=2):` does that by itself; here you do it by hand, once.

There are two buffers for each operand: step k multiplies those of number k % 2 while copies fill the others.
`T.async_copy` starts a copy and does not wait for it; each such copy is a group of its own. `T.ptx_wait_group(n)` waits
until at most the n youngest groups are still on their way.

On a processor copies are done at once, so a forgotten wait goes unseen there. The emulator of a GPU sees it: judge this
puzzle with `--target emulate:sm_90a`.

Hints
- Start the copies of step 0 before the loop.
- In step k: start the copies of step k + 1 if there is one, wait for the copies of step k, multiply.
- How many groups may be on their way at that wait? In the last step?
- `a[k % 2, :, :]` is one of the two buffers.

Judge it:  ./tilepilot run --target emulate:sm_90a examples/puzzles/p08_pipeline.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def pipeline(M, N, K, block=32):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // block, M // block, threads=128) as (bx, by):
            a = T.alloc_shared((2, block, block), "float16")
            b = T.alloc_shared((2, block, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            # your code

    return kernel


if __name__ == "__main__":
    judge_alone(8, pipeline)
