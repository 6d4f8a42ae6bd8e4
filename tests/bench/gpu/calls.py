# What a call of a small kernel costs a script, in host time: evaluator, arguments, launch. Beside a call of PyTorch's.
import time

import tilelang
import tilelang.language as T
import torch

from measure import tell

ROUNDS, CALLS = 21, 200


@tilelang.jit
def increment(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(n):
                B[i] = A[i] + 1.0

    return main


def microseconds(call):
    """Of one call; the device has nothing to do when a round begins."""
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - begin) / CALLS * 1e6)
    return sorted(times)[ROUNDS // 2]


def main():
    a, b = (torch.zeros(32, device="cuda") for _ in range(2))
    kernel = increment(32)
    kernel(a, b)
    ours, theirs = microseconds(lambda: kernel(a, b)), microseconds(lambda: torch.add(a, 1.0, out=b))
    assert torch.equal(b, a + 1)
    tell("a kernel's call in a script", "us", ours, 0, theirs, "theirs: torch.add in the same script")


main()
