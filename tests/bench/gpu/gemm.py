# Matrix products of plain tile programs against cuBLAS: C = A B^T, sums in float32 (int32 of int8).
# gemm.py [ROWS]: which rows, of `fp16`, `small`, `types`, `sm80`; default: the first three.
import sys

import tilelang
import tilelang.language as T
import torch

from measure import in_turn, tell

SHAPES = [(4096, 1024, 8192), (4096, 8192, 8192), (4096, 28672, 8192), (4096, 8192, 28672), (8192, 1024, 8192),
          (8192, 8192, 8192), (8192, 28672, 8192), (8192, 8192, 28672)]
SMALL = [(4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024), (16384, 1024, 1024)]


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K, num_stages, threads, dtype="float16", accum="float32", out="float16",
           precision=None):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                if precision is None:
                    T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                else:
                    T.gemm(A_shared, B_shared, C_local, transpose_B=True, precision=precision)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def flops(shape, milliseconds):
    return 2 * shape[0] * shape[1] * shape[2] / milliseconds / 1e9


def best(configurations, theirs, inputs, shape, **types):
    """The fastest of the configurations, timed in turn with the other side: both times, its result, and all times."""
    kernels = [matmul(*shape, *configuration, **types) for configuration in configurations]
    calls = [lambda kernel=kernel: kernel(*inputs) for kernel in kernels]
    first = in_turn(*calls, repeat=5)
    chosen = first.index(min(first))
    ours, other = in_turn(calls[chosen], theirs)
    rates = [round(flops(shape, time)) for time in first]
    return ours, other, f"{configurations[chosen]} of {rates}", calls[chosen]()


def close(ours, theirs, tolerance):
    difference = (ours.float() - theirs.float()).abs().max() / theirs.float().abs().max()
    assert difference < tolerance, f"the product is wrong by {difference}"


def half(shape, dtype, name, configurations, floor):
    A, B = (torch.randn(rows, shape[2], device="cuda", dtype=dtype) for rows in shape[:2])
    theirs = lambda: torch.matmul(A, B.T)
    ours, other, configuration, C = best(configurations, theirs, (A, B), shape, dtype=name, out=name)
    close(C, theirs(), 2e-2)
    label = "x".join(map(str, shape))
    tell(f"gemm {name} {label}", "TFLOP/s", flops(shape, ours), floor, flops(shape, other), configuration)


def tf32(shape, configurations):
    A, B = (torch.randn(rows, shape[2], device="cuda") for rows in shape[:2])
    torch.backends.cuda.matmul.allow_tf32 = True
    theirs = lambda: torch.matmul(A, B.T)
    ours, other, configuration, C = best(configurations, theirs, (A, B), shape, dtype="float32", out="float32",
                                         precision="tf32")
    close(C, theirs(), 1e-2)
    torch.backends.cuda.matmul.allow_tf32 = False
    tell("gemm tf32 " + "x".join(map(str, shape)), "TFLOP/s", flops(shape, ours), 0.8, flops(shape, other),
         configuration)


def float32(shape, configurations):
    """At no larger error than cuBLAS makes."""
    A, B = (torch.randn(rows, shape[2], device="cuda") for rows in shape[:2])
    theirs = lambda: torch.matmul(A, B.T)
    ours, other, configuration, C = best(configurations, theirs, (A, B), shape, dtype="float32", out="float32",
                                         precision="fp32")
    exact = A.double() @ B.double().T
    error, allowed = ((C.double() - exact).abs().max(), (theirs().double() - exact).abs().max())
    assert error <= allowed, f"an error of {error} where cuBLAS makes {allowed}"
    tell("gemm float32 " + "x".join(map(str, shape)), "TFLOP/s", flops(shape, ours), 1.5, flops(shape, other),
         configuration)


def fp8(shape, configurations):
    A, B = (torch.randn(rows, shape[2], device="cuda").to(torch.float8_e4m3fn) for rows in shape[:2])
    one = torch.tensor(1.0, device="cuda")
    theirs = lambda: torch._scaled_mm(A, B.t(), one, one, out_dtype=torch.bfloat16)
    ours, other, configuration, C = best(configurations, theirs, (A, B), shape, dtype="float8_e4m3fn", out="bfloat16")
    close(C, theirs(), 5e-2)
    tell("gemm fp8 " + "x".join(map(str, shape)), "TFLOP/s", flops(shape, ours), 0.8, flops(shape, other),
         configuration)


def int8(shape, configurations):
    A, B = (torch.randint(-8, 8, (rows, shape[2]), device="cuda", dtype=torch.int8) for rows in shape[:2])
    theirs = lambda: torch._int_mm(A, B.t())
    ours, other, configuration, C = best(configurations, theirs, (A, B), shape, dtype="int8", accum="int32",
                                         out="int32")
    assert torch.equal(C, theirs())
    tell("gemm int8 " + "x".join(map(str, shape)), "TOP/s", flops(shape, ours), 0.8, flops(shape, other),
         configuration)


HOPPER = [(128, 256, 64, 3, 256), (128, 256, 64, 4, 256), (256, 128, 64, 3, 256)]
HOPPER_SMALL = [(128, 256, 64, 4, 256), (128, 128, 64, 4, 256), (128, 128, 64, 4, 128), (128, 64, 64, 6, 128),
                (64, 128, 64, 6, 128), (64, 64, 64, 6, 128)]
AMPERE = [(128, 256, 32, 4, 256), (128, 128, 32, 4, 128), (128, 128, 64, 3, 128)]


def main():
    rows = sys.argv[1:] or ["fp16", "small", "types"]
    cube = (8192, 8192, 8192)
    if "fp16" in rows:
        for shape in SHAPES:
            half(shape, torch.float16, "float16", HOPPER, 0.85)
    if "small" in rows:
        for shape in SMALL:
            half(shape, torch.float16, "float16", HOPPER_SMALL, 0)
    if "sm80" in rows:
        half(cube, torch.float16, "float16", AMPERE, 330)
    if "types" in rows:
        half(cube, torch.bfloat16, "bfloat16", HOPPER, 0.8)
        tf32(cube, [(128, 256, 32, 3, 256), (128, 256, 32, 4, 256), (128, 128, 32, 4, 256), (128, 128, 32, 4, 128)])
        fp8(cube, [(128, 256, 128, 3, 256), (128, 256, 128, 4, 256), (128, 128, 128, 4, 128)])
        float32((4096, 4096, 4096), [(256, 128, 32, 3, 256), (128, 256, 32, 3, 256), (128, 128, 32, 2, 128)])
        int8(cube, [(128, 256, 128, 3, 256), (128, 256, 128, 4, 256), (128, 128, 128, 4, 128)])


main()
