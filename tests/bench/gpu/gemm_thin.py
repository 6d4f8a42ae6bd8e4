# Matrix products in float16 with the tiles that the compiler recommends, against cuBLAS: the best of at most three.
# gemm_thin.py ROWS: `thin` and `deep` (few rows, also with K split over blocks), `layouts` (operands stored otherwise,
# sizes that no tile divides), `recommended` (the shapes of gemm.py). A layout names how A and B are stored: N as [M, K]
# and [K, N], T as [K, M] and [N, K].
import sys

import tilelang
import tilelang.language as T
import torch
from tilelang.carver.arch import CUDA
from tilelang.carver.template import MatmulTemplate

from measure import agree, best_beside, tell

f16, f32 = "float16", "float32"
ROWS = (16, 64, 128, 512)
THIN, DEEP = [(M, 4096, 4096) for M in ROWS], [(M, 4096, 14336) for M in ROWS]
LAYOUTS = [((5000, 3000, 4096), "NT"), ((4096, 4096, 4096), "NN"), ((4096, 4096, 4096), "TN"),
           ((4096, 4096, 4096), "TT"), ((8192, 8192, 8192), "NN")]
SHAPES = [(4096, 1024, 8192), (4096, 8192, 8192), (4096, 28672, 8192), (4096, 8192, 28672), (8192, 1024, 8192),
          (8192, 8192, 8192), (8192, 28672, 8192), (8192, 8192, 28672)]
SPLITS = (2, 4, 8, 16)
SMALLEST_PART = 256  # of K
ELEMENTS = 512  # of a block that adds parts


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, layout, split, out, block_M, block_N, block_K, num_stages, threads, panel):
    """With `split` > 1 the result is [split, M, N], a sum for each part of K."""
    trans_A, trans_B = layout[0] == "T", layout[1] == "T"
    steps = T.ceildiv(T.ceildiv(K, block_K), split)

    @T.prim_func
    def main(A: T.Tensor((K, M) if trans_A else (M, K), f16), B: T.Tensor((N, K) if trans_B else (K, N), f16),
             C: T.Tensor((split, M, N) if split > 1 else (M, N), out)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split, threads=threads) as (bx, by, bz):
            A_shared = T.alloc_shared((block_K, block_M) if trans_A else (block_M, block_K), f16)
            B_shared = T.alloc_shared((block_N, block_K) if trans_B else (block_K, block_N), f16)
            C_local = T.alloc_fragment((block_M, block_N), f32)
            if panel:
                T.use_swizzle(panel)
            T.clear(C_local)
            for step in T.Pipelined(steps, num_stages=num_stages):
                k = (bz * steps + step) * block_K
                if trans_A:
                    T.copy(A[k, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, k], B_shared)
                else:
                    T.copy(B[k, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans_A, transpose_B=trans_B)
            if split > 1:
                T.copy(C_local, C[bz, by * block_M, bx * block_N])
            else:
                T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def add_parts(M, N, split):
    @T.prim_func
    def main(Parts: T.Tensor((split, M, N), f32), C: T.Tensor((M, N), f16)):
        with T.Kernel(T.ceildiv(N, ELEMENTS), M, threads=128) as (bx, by):
            total = T.alloc_fragment((ELEMENTS,), f32)
            T.clear(total)
            for part in T.unroll(split):
                for i in T.Parallel(ELEMENTS):
                    total[i] += Parts[part, by, bx * ELEMENTS + i]
            T.copy(total, C[by, bx * ELEMENTS])

    return main


def recommended(shape, layout, split=1):
    """Three hints. Parts of K are blocks like those of a wider product of a shorter K."""
    M, N, K = shape
    template = MatmulTemplate(M=M, N=N * split, K=K // split, trans_A=layout[0] == "T", trans_B=layout[1] == "T",
                              accum_dtype=f32)
    return template.with_arch(CUDA("cuda")).recommend_hints(topk=3)


def configuration(tiles):
    return tuple(tiles[name] for name in ("block_M", "block_N", "block_K", "num_stages", "threads", "panel_size"))


def plain_calls(shape, layout, A, B):
    """Named calls of the program without a split."""
    for hint in recommended(shape, layout):
        kernel = matmul(*shape, layout, 1, f16, *configuration(hint.tiles))
        yield str(configuration(hint.tiles)), lambda kernel=kernel: kernel(A, B)


def split_calls(shape, layout, A, B):
    """Named calls of the split program, the three that the model likes best."""
    splits = [split for split in SPLITS if shape[2] // split >= SMALLEST_PART]
    hints = [(hint.ms, split, hint.tiles) for split in splits for hint in recommended(shape, layout, split)]
    for _, split, tiles in sorted(hints, key=lambda each: each[:2])[:3]:
        kernel, add = matmul(*shape, layout, split, f32, *configuration(tiles)), add_parts(*shape[:2], split)
        yield f"split {split} {configuration(tiles)}", lambda kernel=kernel, add=add: add(kernel(A, B))


def measure(shape, layout, floor, label, splits=False):
    M, N, K = shape
    stored = lambda rows, columns, transposed: torch.randn(*((columns, rows) if transposed else (rows, columns)),
                                                           device="cuda", dtype=torch.float16)
    A, B = stored(M, K, layout[0] == "T"), stored(K, N, layout[1] == "T")
    theirs = lambda: torch.matmul(A.T if layout[0] == "T" else A, B.T if layout[1] == "T" else B)
    calls = list(plain_calls(shape, layout, A, B)) + (list(split_calls(shape, layout, A, B)) if splits else [])
    chosen, _, ours, other, first = best_beside([call for _, call in calls], [theirs])
    for name, call in calls:
        agree(f"the product of {name}", call(), theirs(), 2e-2)
    rate = lambda milliseconds: 2 * M * N * K / milliseconds / 1e9
    tell(f"gemm {label} {M}x{N}x{K}", "TFLOP/s", rate(ours), floor, rate(other),
         f"{calls[chosen][0]} of {[round(rate(time)) for time in first]}")


def main():
    rows = sys.argv[1:]
    for shape in (THIN if "thin" in rows else []) + (DEEP if "deep" in rows else []):
        measure(shape, "NT", 0.9, "thin", splits=True)
    if "layouts" in rows:
        for shape, layout in LAYOUTS:
            measure(shape, layout, 0.9, layout)
    if "recommended" in rows:
        for shape in SHAPES:
            measure(shape, "NT", 1.0, "recommended")


if __name__ == "__main__":
    main()
