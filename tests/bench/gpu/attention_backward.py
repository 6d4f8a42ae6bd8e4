# Attention backward of a plain tile program, head dim 128: a block owns keys and values, holds their gradients in
# registers and adds to those of the queries by atomics. attention_backward.py [ROWS]: as attention.py.
import math
import sys

import tilelang
import tilelang.language as T
import torch

import vendor
from measure import agree, best_beside, tell

HEADS, SEQUENCE, DIM = 32, 4096, 128
f16, f32 = "float16", "float32"
CONFIGURATIONS = [(128, 64, 2, 256), (128, 64, 1, 256), (64, 64, 2, 128), (128, 32, 2, 256)]
ROWS = 32  # of a block of the kernels before and after


@tilelang.jit(out_idx=[2, 3], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def prepare(batch):
    """The row sums of dO * O, and zeros to add the queries' gradients to."""
    shape = [batch, HEADS, SEQUENCE, DIM]

    @T.prim_func
    def main(O: T.Tensor(shape, f16), dO: T.Tensor(shape, f16), Delta: T.Tensor(shape[:3], f32),
             dQ: T.Tensor(shape, f32)):
        with T.Kernel(T.ceildiv(SEQUENCE, ROWS), HEADS, batch, threads=128) as (bx, by, bz):
            products = T.alloc_fragment([ROWS, DIM], f32)
            gradients = T.alloc_fragment([ROWS, DIM], f32)
            delta = T.alloc_fragment([ROWS], f32)
            T.copy(O[bz, by, bx * ROWS, 0], products)
            T.copy(dO[bz, by, bx * ROWS, 0], gradients)
            for i, j in T.Parallel(ROWS, DIM):
                products[i, j] *= gradients[i, j]
            T.reduce_sum(products, delta, dim=1)
            T.copy(delta, Delta[bz, by, bx * ROWS : (bx + 1) * ROWS])
            for i, j in T.Parallel(ROWS, DIM):
                dQ[bz, by, bx * ROWS + i, j] = 0.0

    return main


@tilelang.jit(out_idx=[1], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def finish(batch):
    """The queries' gradients in float16."""
    shape = [batch, HEADS, SEQUENCE, DIM]

    @T.prim_func
    def main(Sum: T.Tensor(shape, f32), dQ: T.Tensor(shape, f16)):
        with T.Kernel(T.ceildiv(SEQUENCE, ROWS), HEADS, batch, threads=128) as (bx, by, bz):
            for i, j in T.Parallel(ROWS, DIM):
                dQ[bz, by, bx * ROWS + i, j] = Sum[bz, by, bx * ROWS + i, j] / math.sqrt(DIM)

    return main


@tilelang.jit(out_idx=[7, 8], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def backward(batch, causal, block_K, block_Q, num_stages, threads):
    """`block_K` keys and values a block, `block_Q` queries a step; scores and their gradients are transposed."""
    shape = [batch, HEADS, SEQUENCE, DIM]
    scale = 1 / math.sqrt(DIM) * math.log2(math.e)

    @T.prim_func
    def main(Q: T.Tensor(shape, f16), K: T.Tensor(shape, f16), V: T.Tensor(shape, f16), dO: T.Tensor(shape, f16),
             Lse: T.Tensor(shape[:3], f32), Delta: T.Tensor(shape[:3], f32), dQ: T.Tensor(shape, f32),
             dK: T.Tensor(shape, f16), dV: T.Tensor(shape, f16)):
        with T.Kernel(T.ceildiv(SEQUENCE, block_K), HEADS, batch, threads=threads) as (bx, by, bz):
            K_shared = T.alloc_shared([block_K, DIM], f16)
            V_shared = T.alloc_shared([block_K, DIM], f16)
            Q_shared = T.alloc_shared([block_Q, DIM], f16)
            dO_shared = T.alloc_shared([block_Q, DIM], f16)
            lse = T.alloc_shared([block_Q], f32)
            delta = T.alloc_shared([block_Q], f32)
            dS_shared = T.alloc_shared([block_K, block_Q], f16)
            scores = T.alloc_fragment([block_K, block_Q], f32)
            d_scores = T.alloc_fragment([block_K, block_Q], f32)
            weights = T.alloc_fragment([block_K, block_Q], f16)
            d_weights = T.alloc_fragment([block_K, block_Q], f16)
            dq = T.alloc_fragment([block_Q, DIM], f32)
            dk = T.alloc_fragment([block_K, DIM], f32)
            dv = T.alloc_fragment([block_K, DIM], f32)
            T.copy(K[bz, by, bx * block_K : (bx + 1) * block_K, :], K_shared)
            T.copy(V[bz, by, bx * block_K : (bx + 1) * block_K, :], V_shared)
            T.clear(dk)
            T.clear(dv)
            first = bx * block_K // block_Q if causal else 0
            for k in T.Pipelined(first, T.ceildiv(SEQUENCE, block_Q), num_stages=num_stages):
                T.copy(Q[bz, by, k * block_Q : (k + 1) * block_Q, :], Q_shared)
                T.copy(Lse[bz, by, k * block_Q : (k + 1) * block_Q], lse)
                T.clear(scores)
                T.gemm(K_shared, Q_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(dO[bz, by, k * block_Q : (k + 1) * block_Q, :], dO_shared)
                T.clear(d_scores)
                T.gemm(V_shared, dO_shared, d_scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_K, block_Q):
                    scores[i, j] = T.exp2(scores[i, j] * scale - lse[j] * math.log2(math.e))
                if causal:
                    for i, j in T.Parallel(block_K, block_Q):
                        scores[i, j] = T.if_then_else(bx * block_K + i <= k * block_Q + j, scores[i, j], 0)
                T.copy(scores, weights)
                T.gemm(weights, dO_shared, dv, policy=T.GemmWarpPolicy.FullRow)
                T.copy(Delta[bz, by, k * block_Q : (k + 1) * block_Q], delta)
                for i, j in T.Parallel(block_K, block_Q):
                    d_weights[i, j] = scores[i, j] * (d_scores[i, j] - delta[j])
                T.gemm(d_weights, Q_shared, dk, policy=T.GemmWarpPolicy.FullRow)
                T.copy(d_weights, dS_shared)
                T.clear(dq)
                T.gemm(dS_shared, K_shared, dq, transpose_A=True)
                for i, j in T.Parallel(block_Q, DIM):
                    T.atomic_add(dQ[bz, by, k * block_Q + i, j], dq[i, j])
            for i, j in T.Parallel(block_K, DIM):
                dk[i, j] /= math.sqrt(DIM)
            T.copy(dk, dK[bz, by, bx * block_K : (bx + 1) * block_K, :])
            T.copy(dv, dV[bz, by, bx * block_K : (bx + 1) * block_K, :])

    return main


def measure(batch, causal, floor):
    shape = (batch, HEADS, SEQUENCE, DIM)
    Q, K, V, dO = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(4))
    output, Lse = vendor.attention(Q, K, V, causal)[0][1]()[:2]
    output, Lse = output.contiguous(), Lse.reshape(shape[:3]).contiguous()
    before, after = prepare(batch), finish(batch)

    def gradients(kernel):
        Delta, dQ = before(output, dO)
        dK, dV = kernel(Q, K, V, dO, Lse, Delta, dQ)
        return after(dQ), dK, dV

    kernels = [backward(batch, causal, *configuration) for configuration in CONFIGURATIONS]
    theirs = vendor.attention_backward(Q, K, V, dO, causal)
    calls = [lambda kernel=kernel: gradients(kernel) for kernel in kernels]
    chosen, other, ours_ms, other_ms, first = best_beside(calls, [call for _, call in theirs])
    expected = theirs[other][1]()
    for configuration, call in zip(CONFIGURATIONS, calls):
        for name, one, two in zip("QKV", call(), expected):
            agree(f"the gradient of {name} {configuration}", one, two, 2e-2)
    flops = 10 * batch * HEADS * SEQUENCE * SEQUENCE * DIM / (2 if causal else 1)
    kind = "causal" if causal else "full"
    tell(f"attention backward {kind} b{batch} s{SEQUENCE} d{DIM}", "TFLOP/s", flops / ours_ms / 1e9, floor,
         flops / other_ms / 1e9,
         f"{CONFIGURATIONS[chosen]} of {[round(flops / time / 1e9) for time in first]}, theirs: {theirs[other][0]}")


def main():
    rows = sys.argv[1:] or ["causal", "full"]
    if "causal" in rows:
        measure(4, True, 0.85)
    if "full" in rows:
        measure(4, False, 0.85)


if __name__ == "__main__":
    main()
