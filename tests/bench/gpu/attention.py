# Attention forward of a plain tile program (online softmax, scores and probabilities in registers) against the better
# of cuDNN and FlashAttention. attention.py [ROWS]: `causal` (batch 1), `full` (batch 4), both of head dim 128,
# sequences of 4096 and 32 heads; `dims`: other head dims; `long`: longer sequences, and fewer heads of keys and values.
# Default: the first two.
import math
import sys

import tilelang
import tilelang.language as T
import torch

import vendor
from measure import agree, best_beside, tell

HEADS, SEQUENCE = 32, 4096
CONFIGURATIONS = {  # by head dim
    64: [(128, 128, 2, 256), (128, 64, 2, 128), (64, 64, 2, 128)],
    128: [(128, 128, 2, 256), (128, 128, 1, 256), (128, 64, 2, 128), (128, 64, 1, 128)],
    256: [(128, 64, 2, 256), (128, 128, 1, 256), (64, 64, 1, 128)],
}


@tilelang.jit(out_idx=[3], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def attention(batch, kv_heads, sequence, dim, causal, block_M, block_N, num_stages, threads):
    shape, kv_shape = [batch, HEADS, sequence, dim], [batch, kv_heads, sequence, dim]
    group = HEADS // kv_heads
    scale = 1 / math.sqrt(dim) * math.log2(math.e)

    @T.prim_func
    def main(Q: T.Tensor(shape, "float16"), K: T.Tensor(kv_shape, "float16"),
             V: T.Tensor(kv_shape, "float16"), Output: T.Tensor(shape, "float16")):
        with T.Kernel(T.ceildiv(sequence, block_M), HEADS, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared([block_M, dim], "float16")
            K_shared = T.alloc_shared([block_N, dim], "float16")
            V_shared = T.alloc_shared([block_N, dim], "float16")
            scores = T.alloc_fragment([block_M, block_N], "float32")
            weights = T.alloc_fragment([block_M, block_N], "float16")
            result = T.alloc_fragment([block_M, dim], "float32")
            top = T.alloc_fragment([block_M], "float32")
            top_before = T.alloc_fragment([block_M], "float32")
            shrink = T.alloc_fragment([block_M], "float32")
            row_sum = T.alloc_fragment([block_M], "float32")
            total = T.alloc_fragment([block_M], "float32")
            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(result, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            steps = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(sequence, block_N)
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(K[bz, by // group, k * block_N : (k + 1) * block_N, :], K_shared)
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        scores[i, j] = T.if_then_else(bx * block_M + i >= k * block_N + j, 0,
                                                      -T.infinity("float32"))
                else:
                    T.clear(scores)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(top, top_before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    shrink[i] = T.exp2(top_before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * shrink[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    result[i, j] *= shrink[i]
                T.copy(V[bz, by // group, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(weights, V_shared, result, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                result[i, j] /= total[i]
            T.copy(result, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


def measure(batch, causal, floor, kv_heads=HEADS, sequence=SEQUENCE, dim=128):
    tensor = lambda heads: torch.randn(batch, heads, sequence, dim, device="cuda", dtype=torch.float16)
    Q, K, V = tensor(HEADS), tensor(kv_heads), tensor(kv_heads)
    configurations = CONFIGURATIONS[dim]
    kernels = [attention(batch, kv_heads, sequence, dim, causal, *configuration) for configuration in configurations]
    theirs = vendor.attention(Q, K, V, causal)
    calls = [lambda kernel=kernel: kernel(Q, K, V) for kernel in kernels]
    chosen, other, ours_ms, other_ms, first = best_beside(calls, [call for _, call in theirs])
    expected = theirs[other][1]()[0]
    for configuration, call in zip(configurations, calls):
        agree(f"attention {configuration}", call(), expected, 2e-2, relative=False)
    flops = 4 * batch * HEADS * sequence * sequence * dim / (2 if causal else 1)
    kind = ("causal" if causal else "full") + ("" if kv_heads == HEADS else f" {HEADS}/{kv_heads} heads")
    tell(f"attention {kind} b{batch} s{sequence} d{dim}", "TFLOP/s", flops / ours_ms / 1e9, floor,
         flops / other_ms / 1e9,
         f"{configurations[chosen]} of {[round(flops / time / 1e9) for time in first]}, theirs: {theirs[other][0]}")


def main():
    rows = sys.argv[1:] or ["causal", "full"]
    if "causal" in rows:
        measure(1, True, 300)
    if "full" in rows:
        measure(4, False, 380)
    if "dims" in rows:
        for dim in (64, 256):
            measure(1, True, 1.0, dim=dim)
            measure(4, False, 1.0, dim=dim)
    if "long" in rows:
        measure(4, True, 1.0, kv_heads=8)
        measure(1, True, 1.0, sequence=16384)
        measure(1, False, 1.0, sequence=16384)


if __name__ == "__main__":
    main()
