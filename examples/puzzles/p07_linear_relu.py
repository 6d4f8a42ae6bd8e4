"""Puzzle 7: a linear layer with an epilogue.

Y = relu(X @ W^T + b). X is M by K and W is N by K, as PyTorch keeps weights, both float16; b has N numbers of float32, Y is
M by N of float16. No size is a multiple of 32.

The bias and the relu are an epilogue: they are done on the fragment, before it is written, so that the product is not
written and read once more.

Hints
- `T.gemm(x, w, y, transpose_B=True)` takes a tile of W as it is stored.
- Beside a tensor a copy reads 0, and a product with 0 adds nothing: how many tiles does K need?
- `for i, j in T.Parallel(32, 32):` changes the fragment in place.

Judge it:  ./tilepilot run examples/puzzles/p07_linear_relu.py
"""
import tilelang
import tilelang.language as T

from verdict import judge_alone


@tilelang.jit
def linear_relu(M, N, K, block=32):
    @T.prim_func
    def kernel(X: T.Tensor((M, K), "float16"), W: T.Tensor((N, K), "float16"), b: T.Tensor((N,), "float32"),
               Y: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            x = T.alloc_shared((block, block), "float16")
            w = T.alloc_shared((block, block), "float16")
            y = T.alloc_fragment((block, block), "float32")
            # your code

    return kernel


if __name__ == "__main__":
    judge_alone(7, linear_relu)
