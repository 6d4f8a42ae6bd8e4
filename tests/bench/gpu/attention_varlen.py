# Attention forward of sequences of unequal lengths, packed one behind another (`cu_seqlens`), against the better of
# cuDNN and FlashAttention: the program of attention.py, whose blocks find their rows. Head dim 128, 32 heads.
import math

import tilelang
import tilelang.language as T
import torch

import vendor
from measure import agree, best_beside, tell

HEADS, DIM = 32, 128
LENGTHS = [4096, 1000, 2500, 333, 3072, 64, 1777, 3542]
CONFIGURATIONS = [(128, 128, 2, 256), (128, 128, 1, 256), (128, 64, 2, 128)]
f16, f32 = "float16", "float32"


@tilelang.jit(out_idx=[4], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def attention(total, longest, batch, causal, block_M, block_N, num_stages, threads):
    shape = [total, HEADS, DIM]
    scale = 1 / math.sqrt(DIM) * math.log2(math.e)

    @T.prim_func
    def main(Q: T.Tensor(shape, f16), K: T.Tensor(shape, f16), V: T.Tensor(shape, f16),
             Starts: T.Tensor([batch + 1], "int32"), Output: T.Tensor(shape, f16)):
        with T.Kernel(T.ceildiv(longest, block_M), HEADS, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared([block_M, DIM], f16)
            K_shared = T.alloc_shared([block_N, DIM], f16)
            V_shared = T.alloc_shared([block_N, DIM], f16)
            scores = T.alloc_fragment([block_M, block_N], f32)
            weights = T.alloc_fragment([block_M, block_N], f16)
            result = T.alloc_fragment([block_M, DIM], f32)
            top = T.alloc_fragment([block_M], f32)
            top_before = T.alloc_fragment([block_M], f32)
            shrink = T.alloc_fragment([block_M], f32)
            row_sum = T.alloc_fragment([block_M], f32)
            total_sum = T.alloc_fragment([block_M], f32)
            start = Starts[bz]
            length = Starts[bz + 1] - start
            if bx * block_M < length:
                T.copy(Q[start + bx * block_M : start + (bx + 1) * block_M, by, :], Q_shared)
                T.fill(result, 0)
                T.fill(total_sum, 0)
                T.fill(top, -T.infinity(f32))
                last = T.min(length, (bx + 1) * block_M) if causal else length
                for k in T.Pipelined(T.ceildiv(last, block_N), num_stages=num_stages):
                    T.copy(K[start + k * block_N : start + (k + 1) * block_N, by, :], K_shared)
                    for i, j in T.Parallel(block_M, block_N):
                        inside = k * block_N + j < length
                        if causal:
                            inside = T.And(inside, bx * block_M + i >= k * block_N + j)
                        scores[i, j] = T.if_then_else(inside, 0, -T.infinity(f32))
                    T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                    T.copy(top, top_before)
                    T.reduce_max(scores, top, dim=1, clear=False)
                    for i in T.Parallel(block_M):
                        shrink[i] = T.exp2(top_before[i] * scale - top[i] * scale)
                    for i, j in T.Parallel(block_M, block_N):
                        scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                    T.reduce_sum(scores, row_sum, dim=1)
                    for i in T.Parallel(block_M):
                        total_sum[i] = total_sum[i] * shrink[i] + row_sum[i]
                    T.copy(scores, weights)
                    for i, j in T.Parallel(block_M, DIM):
                        result[i, j] *= shrink[i]
                    T.copy(V[start + k * block_N : start + (k + 1) * block_N, by, :], V_shared)
                    T.gemm(weights, V_shared, result, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_M, DIM):
                    if bx * block_M + i < length:
                        Output[start + bx * block_M + i, by, j] = result[i, j] / total_sum[i]

    return main


def measure(causal, floor):
    total, longest, batch = sum(LENGTHS), max(LENGTHS), len(LENGTHS)
    Q, K, V = (torch.randn(total, HEADS, DIM, device="cuda", dtype=torch.float16) for _ in range(3))
    starts = torch.tensor([sum(LENGTHS[:each]) for each in range(batch + 1)], dtype=torch.int32, device="cuda")
    kernels = [attention(total, longest, batch, causal, *configuration) for configuration in CONFIGURATIONS]
    theirs = vendor.attention_varlen(Q, K, V, starts, longest, causal)
    calls = [lambda kernel=kernel: kernel(Q, K, V, starts) for kernel in kernels]
    chosen, other, ours_ms, other_ms, first = best_beside(calls, [call for _, call in theirs])
    expected = theirs[other][1]()[0]
    for configuration, call in zip(CONFIGURATIONS, calls):
        agree(f"attention {configuration}", call(), expected, 2e-2, relative=False)
    flops = 4 * HEADS * DIM * sum(length * length for length in LENGTHS) / (2 if causal else 1)
    kind = "causal" if causal else "full"
    tell(f"attention varlen {kind} {batch} sequences d{DIM}", "TFLOP/s", flops / ours_ms / 1e9, floor,
         flops / other_ms / 1e9,
         f"{CONFIGURATIONS[chosen]} of {[round(flops / time / 1e9) for time in first]}, theirs: {theirs[other][0]}")


def main():
    for causal in (True, False):
        measure(causal, 1.0)


if __name__ == "__main__":
    main()
