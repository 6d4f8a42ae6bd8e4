"""Puzzle 10: attention.

O[h] = softmax(Q[h] @ K[h]^T / sqrt(D), causal) @ V[h] for each head h. Q, K, V and O are H by S by D of float16; D is 32,
and S is any number. Causal: position i takes part only in positions j <= i.

The scores of a head are S by S numbers, too many to keep. So a block takes 32 positions of one head and walks along the
keys, 32 at a time: scores, online softmax as in puzzle 5, a product with the values. Where a tile brings a larger maximum,
the output so far is scaled as the sum is.

Hints
- `T.gemm(q, k, scores, transpose_B=True)` after `T.clear(scores)`.
- Set a score that does not take part to -T.infinity("float32"). Keys beside the tensor come after every position that is
  written, so the causal condition covers the tail as well.
- The second gemm multiplies float16 by float16: copy the scores, once they are exponentials, to `weights`.
- Block number `bx` needs only the first `bx + 1` tiles of keys.
- `for k in T.Pipelined(steps, num_stages=2):` loads the next keys and values ahead.

Judge it:  ./tilepilot run examples/puzzles/p10_attention.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def attention(H, S, D=32, block=32):
    scale = D ** -0.5

    @T.prim_func
    def kernel(Q: T.Tensor((H, S, D), "float16"), K: T.Tensor((H, S, D), "float16"),
               V: T.Tensor((H, S, D), "float16"), O: T.Tensor((H, S, D), "float16")):
        with T.Kernel(T.ceildiv(S, block), H, threads=128) as (bx, h):
            q = T.alloc_shared((block, D), "float16")
            k = T.alloc_shared((block, D), "float16")
            v = T.alloc_shared((block, D), "float16")
            scores = T.alloc_fragment((block, block), "float32")
            weights = T.alloc_fragment((block, block), "float16")
            out = T.alloc_fragment((block, D), "float32")
            highest = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            # your code

    return kernel


if __name__ == "__main__":
    judge_alone(10, attention)
