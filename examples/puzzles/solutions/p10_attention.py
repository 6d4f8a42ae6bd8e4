"""Solution of puzzle 10. The walk ends at the tile that holds the block's own positions. `out` and `total` are scaled by
the same factor, so their ratio is right whatever the maximum was on the way."""
import tilelang
import tilelang.language as T


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
            part = T.alloc_fragment((block,), "float32")
            T.copy(Q[h, bx * block, 0], q)
            T.fill(highest, -T.infinity("float32"))
            T.clear(total)
            T.clear(out)
            for step in T.Pipelined(bx + 1, num_stages=2):
                T.copy(K[h, step * block, 0], k)
                T.copy(V[h, step * block, 0], v)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.if_then_else(step * block + j <= bx * block + i, scores[i, j] * scale,
                                                  -T.infinity("float32"))
                T.copy(highest, before)
                T.reduce_max(scores, highest, dim=1, clear=False)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp(scores[i, j] - highest[i])
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block):
                    total[i] = total[i] * T.exp(before[i] - highest[i]) + part[i]
                for i, j in T.Parallel(block, D):
                    out[i, j] *= T.exp(before[i] - highest[i])
                T.copy(scores, weights)
                T.gemm(weights, v, out)
            for i, j in T.Parallel(block, D):
                out[i, j] /= total[i]
            T.copy(out, O[h, bx * block, 0])

    return kernel
