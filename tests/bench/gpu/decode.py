# Attention of one query a sequence over what was kept of 8192 tokens: bytes of keys and values read in a second beside
# what a copy on the device moves (read and written). The sequence is split over blocks, whose results a second kernel
# combines. decode.py [ROWS]: `gqa` (32 heads, 8 of keys and values), `paged` (the same, in pages of 64 tokens), `mla`
# (128 heads, one latent vector of 512 and 64 a token); default: all.
import math
import sys

import tilelang
import tilelang.language as T
import torch
import torch.nn.functional as F

from measure import agree, best_beside, tell

BATCH, TOKENS, HEADS, KV_HEADS, DIM, PAGE = 64, 8192, 32, 8, 128, 64
MLA_HEADS, LATENT, ROPE = 128, 512, 64
GROUP = HEADS // KV_HEADS
COPIED = 1 << 28  # numbers in float16
f16, f32 = "float16", "float32"
GQA = [(16, 128, 2, 128, 4), (16, 64, 3, 128, 4), (64, 128, 2, 128, 2), (64, 64, 3, 128, 4)]
PAGED = [(16, PAGE, 3, 128, 4), (64, PAGE, 3, 128, 4), (64, PAGE, 2, 128, 2)]
MLA = [(64, 64, 2, 256, 1), (64, 64, 2, 256, 2), (64, 32, 2, 256, 1), (64, 64, 1, 256, 1)]


@tilelang.jit(out_idx=[-2, -1], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def gqa(paged, block_H, block_N, num_stages, threads, split):
    """Rows of `block_H` beyond a group of heads are computed in vain: tensor cores have no smaller tiles."""
    kv_shape = (BATCH * TOKENS // PAGE, PAGE, KV_HEADS, DIM) if paged else (BATCH, TOKENS, KV_HEADS, DIM)
    scale = 1 / math.sqrt(DIM) * math.log2(math.e)
    steps = TOKENS // split // block_N

    @T.macro
    def attend(Q, K, V, Table, Part, Lse, bx, by, bz):
        Q_shared = T.alloc_shared((block_H, DIM), f16)
        K_shared = T.alloc_shared((block_N, DIM), f16)
        V_shared = T.alloc_shared((block_N, DIM), f16)
        scores = T.alloc_fragment((block_H, block_N), f32)
        weights = T.alloc_fragment((block_H, block_N), f16)
        result = T.alloc_fragment((block_H, DIM), f32)
        top = T.alloc_fragment((block_H,), f32)
        top_before = T.alloc_fragment((block_H,), f32)
        shrink = T.alloc_fragment((block_H,), f32)
        row_sum = T.alloc_fragment((block_H,), f32)
        total = T.alloc_fragment((block_H,), f32)
        T.copy(Q[bz, by * GROUP, 0], Q_shared)
        T.clear(result)
        T.clear(total)
        T.fill(top, -T.infinity(f32))
        for step in T.Pipelined(steps, num_stages=num_stages):
            k = bx * steps + step
            if paged:
                T.copy(K[Table[bz, k], :, by, :], K_shared)
            else:
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_shared)
            T.clear(scores)
            T.gemm(Q_shared, K_shared, scores, transpose_B=True)
            T.copy(top, top_before)
            T.reduce_max(scores, top, dim=1, clear=False)
            for i in T.Parallel(block_H):
                shrink[i] = T.exp2(top_before[i] * scale - top[i] * scale)
            for i, j in T.Parallel(block_H, block_N):
                scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
            T.reduce_sum(scores, row_sum, dim=1)
            for i in T.Parallel(block_H):
                total[i] = total[i] * shrink[i] + row_sum[i]
            T.copy(scores, weights)
            for i, j in T.Parallel(block_H, DIM):
                result[i, j] *= shrink[i]
            if paged:
                T.copy(V[Table[bz, k], :, by, :], V_shared)
            else:
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_shared)
            T.gemm(weights, V_shared, result)
        for i, j in T.Parallel(block_H, DIM):
            result[i, j] /= total[i]
        for i in T.Parallel(block_H):
            total[i] = T.log2(total[i]) + top[i] * scale
        for i, j in T.Parallel(block_H, DIM):
            if i < GROUP:
                Part[bz, by * GROUP + i, bx, j] = result[i, j]
        for i in T.Parallel(block_H):
            if i < GROUP:
                Lse[bz, by * GROUP + i, bx] = total[i]

    if not paged:
        @T.prim_func
        def contiguous(Q: T.Tensor((BATCH, HEADS, DIM), f16), K: T.Tensor(kv_shape, f16), V: T.Tensor(kv_shape, f16),
                       Part: T.Tensor((BATCH, HEADS, split, DIM), f16), Lse: T.Tensor((BATCH, HEADS, split), f32)):
            with T.Kernel(split, KV_HEADS, BATCH, threads=threads) as (bx, by, bz):
                attend(Q, K, V, None, Part, Lse, bx, by, bz)

        return contiguous

    @T.prim_func
    def pages(Q: T.Tensor((BATCH, HEADS, DIM), f16), K: T.Tensor(kv_shape, f16), V: T.Tensor(kv_shape, f16),
              Table: T.Tensor((BATCH, TOKENS // PAGE), "int32"), Part: T.Tensor((BATCH, HEADS, split, DIM), f16),
              Lse: T.Tensor((BATCH, HEADS, split), f32)):
        with T.Kernel(split, KV_HEADS, BATCH, threads=threads) as (bx, by, bz):
            attend(Q, K, V, Table, Part, Lse, bx, by, bz)

    return pages


@tilelang.jit(out_idx=[-2, -1], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def mla(block_H, block_N, num_stages, threads, split):
    scale = 1 / math.sqrt(LATENT + ROPE) * math.log2(math.e)
    steps = TOKENS // split // block_N

    @T.prim_func
    def main(Q: T.Tensor((BATCH, MLA_HEADS, LATENT), f16), Q_rope: T.Tensor((BATCH, MLA_HEADS, ROPE), f16),
             KV: T.Tensor((BATCH, TOKENS, LATENT), f16), K_rope: T.Tensor((BATCH, TOKENS, ROPE), f16),
             Part: T.Tensor((BATCH, MLA_HEADS, split, LATENT), f16), Lse: T.Tensor((BATCH, MLA_HEADS, split), f32)):
        with T.Kernel(MLA_HEADS // block_H, split, BATCH, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_H, LATENT), f16)
            Q_rope_shared = T.alloc_shared((block_H, ROPE), f16)
            KV_shared = T.alloc_shared((block_N, LATENT), f16)
            K_rope_shared = T.alloc_shared((block_N, ROPE), f16)
            weights = T.alloc_shared((block_H, block_N), f16)
            scores = T.alloc_fragment((block_H, block_N), f32)
            result = T.alloc_fragment((block_H, LATENT), f32)
            top = T.alloc_fragment((block_H,), f32)
            top_before = T.alloc_fragment((block_H,), f32)
            shrink = T.alloc_fragment((block_H,), f32)
            row_sum = T.alloc_fragment((block_H,), f32)
            total = T.alloc_fragment((block_H,), f32)
            T.copy(Q[bz, bx * block_H, 0], Q_shared)
            T.copy(Q_rope[bz, bx * block_H, 0], Q_rope_shared)
            T.clear(result)
            T.clear(total)
            T.fill(top, -T.infinity(f32))
            for step in T.Pipelined(steps, num_stages=num_stages):
                T.copy(KV[bz, (by * steps + step) * block_N, 0], KV_shared)
                T.copy(K_rope[bz, (by * steps + step) * block_N, 0], K_rope_shared)
                T.clear(scores)
                T.gemm(Q_shared, KV_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
                T.gemm(Q_rope_shared, K_rope_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
                T.copy(top, top_before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    shrink[i] = T.exp2(top_before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(block_H, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                T.copy(scores, weights)
                for i in T.Parallel(block_H):
                    total[i] = total[i] * shrink[i] + row_sum[i]
                for i, j in T.Parallel(block_H, LATENT):
                    result[i, j] *= shrink[i]
                T.gemm(weights, KV_shared, result, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(block_H, LATENT):
                result[i, j] /= total[i]
            for i in T.Parallel(block_H):
                total[i] = T.log2(total[i]) + top[i] * scale
            T.copy(result, Part[bz, bx * block_H : (bx + 1) * block_H, by, :])
            T.copy(total, Lse[bz, bx * block_H : (bx + 1) * block_H, by])

    return main


@tilelang.jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def combine(heads, split, dim):
    @T.prim_func
    def main(Part: T.Tensor((BATCH, heads, split, dim), f16), Lse: T.Tensor((BATCH, heads, split), f32),
             Output: T.Tensor((BATCH, heads, dim), f16)):
        with T.Kernel(heads, BATCH, threads=128) as (bx, by):
            share = T.alloc_fragment((split,), f32)
            top = T.alloc_fragment((1,), f32)
            total = T.alloc_fragment((1,), f32)
            result = T.alloc_fragment((dim,), f32)
            T.copy(Lse[by, bx, :], share)
            T.reduce_max(share, top, dim=0)
            for i in T.Parallel(split):
                share[i] = T.exp2(share[i] - top[0])
            T.reduce_sum(share, total, dim=0)
            T.clear(result)
            for part in T.unroll(split):
                for j in T.Parallel(dim):
                    result[j] += Part[by, bx, part, j] * T.exp2(Lse[by, bx, part] - top[0]) / total[0]
            T.copy(result, Output[by, bx, :])

    return main


def whole(kernel, inputs, split):
    """A call of both kernels; without a split the first one is enough."""
    if split == 1:
        return lambda: kernel(*inputs)[0][:, :, 0]
    _, heads, dim = inputs[0].shape
    second = combine(heads, split, dim)
    return lambda: second(*kernel(*inputs))


def measure(name, configurations, kernels, inputs, expected, read_bytes):
    calls = [whole(kernel, inputs, configuration[-1]) for kernel, configuration in zip(kernels, configurations)]
    x, y = (torch.empty(COPIED, device="cuda", dtype=torch.float16) for _ in range(2))
    chosen, _, ours, other, first = best_beside(calls, [lambda: y.copy_(x)])
    for configuration, call in zip(configurations, calls):
        agree(f"{name} {configuration}", call(), expected, 2e-2)
    tell(f"{name} b{BATCH} s{TOKENS}", "GB/s", read_bytes / ours / 1e6, 0.85, 4 * COPIED / other / 1e6,
         f"{configurations[chosen]} of {[round(read_bytes / time / 1e6) for time in first]}, theirs: a copy")


def measure_gqa(paged):
    tensor = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.float16)
    Q, K, V = tensor(BATCH, HEADS, DIM), tensor(BATCH, TOKENS, KV_HEADS, DIM), tensor(BATCH, TOKENS, KV_HEADS, DIM)
    expected = F.scaled_dot_product_attention(Q.unsqueeze(2), K.transpose(1, 2), V.transpose(1, 2), enable_gqa=True)
    read_bytes = 2 * 2 * BATCH * TOKENS * KV_HEADS * DIM
    inputs = (Q, K, V)
    if paged:  # where page i lies, in no order
        table = torch.randperm(BATCH * TOKENS // PAGE, device="cuda")
        K, V = (torch.empty_like(each).reshape(-1, PAGE, KV_HEADS, DIM).index_copy_(
            0, table, each.reshape(-1, PAGE, KV_HEADS, DIM)) for each in (K, V))
        inputs = (Q, K, V, table.reshape(BATCH, TOKENS // PAGE).to(torch.int32))
    configurations = PAGED if paged else GQA
    kernels = [gqa(paged, *configuration) for configuration in configurations]
    measure("decode GQA" + (" paged" if paged else ""), configurations, kernels, inputs, expected[:, :, 0], read_bytes)


def measure_mla():
    tensor = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.float16)
    Q, Q_rope = tensor(BATCH, MLA_HEADS, LATENT), tensor(BATCH, MLA_HEADS, ROPE)
    KV, K_rope = tensor(BATCH, TOKENS, LATENT), tensor(BATCH, TOKENS, ROPE)
    scores = Q @ KV.transpose(1, 2) + Q_rope @ K_rope.transpose(1, 2)
    expected = torch.softmax(scores.float() / math.sqrt(LATENT + ROPE), dim=-1).to(torch.float16) @ KV
    read_bytes = 2 * BATCH * TOKENS * (LATENT + ROPE)
    kernels = [mla(*configuration) for configuration in MLA]
    measure("decode MLA", MLA, kernels, (Q, Q_rope, KV, K_rope), expected, read_bytes)


def main():
    rows = sys.argv[1:] or ["gqa", "paged", "mla"]
    for paged in (False, True):
        if ("paged" if paged else "gqa") in rows:
            measure_gqa(paged)
    if "mla" in rows:
        measure_mla()


if __name__ == "__main__":
    main()
