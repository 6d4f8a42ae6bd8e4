# Attention forward of a plain tile program (online softmax, scores and probabilities in registers), head dim 128.
# attention.py [ROWS]: `causal` (batch 1), `full` (batch 4), sequences of 4096, 32 heads; default: both.
import math
import sys

import tilelang
import tilelang.language as T
import torch
import torch.nn.functional as F

from measure import in_turn, tell

HEADS, SEQUENCE, DIM = 32, 4096, 128
CONFIGURATIONS = [(128, 128, 2, 256), (128, 128, 1, 256), (128, 64, 2, 128), (128, 64, 1, 128)]


@tilelang.jit(out_idx=[3])
def attention(batch, causal, block_M, block_N, num_stages, threads):
    shape = [batch, HEADS, SEQUENCE, DIM]
    scale = 1 / math.sqrt(DIM) * math.log2(math.e)

    @T.prim_func
    def main(Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"), V: T.Tensor(shape, "float16"),
             Output: T.Tensor(shape, "float16")):
        with T.Kernel(T.ceildiv(SEQUENCE, block_M), HEADS, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared([block_M, DIM], "float16")
            K_shared = T.alloc_shared([block_N, DIM], "float16")
            V_shared = T.alloc_shared([block_N, DIM], "float16")
            scores = T.alloc_fragment([block_M, block_N], "float32")
            weights = T.alloc_fragment([block_M, block_N], "float16")
            result = T.alloc_fragment([block_M, DIM], "float32")
            top = T.alloc_fragment([block_M], "float32")
            top_before = T.alloc_fragment([block_M], "float32")
            shrink = T.alloc_fragment([block_M], "float32")
            row_sum = T.alloc_fragment([block_M], "float32")
            total = T.alloc_fragment([block_M], "float32")
            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(result, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            steps = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(SEQUENCE, block_N)
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(K[bz, by, k * block_N : (k + 1) * block_N, :], K_shared)
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
                for i, j in T.Parallel(block_M, DIM):
                    result[i, j] *= shrink[i]
                T.copy(V[bz, by, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(weights, V_shared, result, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, DIM):
                result[i, j] /= total[i]
            T.copy(result, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


def measure(batch, causal, floor):
    Q, K, V = (torch.randn(batch, HEADS, SEQUENCE, DIM, device="cuda", dtype=torch.float16) for _ in range(3))
    theirs = lambda: F.scaled_dot_product_attention(Q, K, V, is_causal=causal)
    kernels = [attention(batch, causal, *configuration) for configuration in CONFIGURATIONS]
    calls = [lambda kernel=kernel: kernel(Q, K, V) for kernel in kernels]
    first = in_turn(*calls, repeat=5)
    chosen = first.index(min(first))
    ours, other = in_turn(calls[chosen], theirs)
    difference = (calls[chosen]().float() - theirs().float()).abs().max()
    assert difference < 2e-2, f"attention is wrong by {difference}"
    flops = 4 * batch * HEADS * SEQUENCE * SEQUENCE * DIM / (2 if causal else 1)
    kind = "causal" if causal else "full"
    tell(f"attention {kind} b{batch} s{SEQUENCE} d{DIM}", "TFLOP/s", flops / ours / 1e9, floor, flops / other / 1e9,
         f"{CONFIGURATIONS[chosen]} of {[round(flops / time / 1e9) for time in first]}")


rows = sys.argv[1:] or ["causal", "full"]
if "causal" in rows:
    measure(1, True, 300)
if "full" in rows:
    measure(4, False, 380)
