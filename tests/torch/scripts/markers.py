# Markers for a profiler of CUDA devices: accepted around a kernel and inside, and no number changes.
import tilelang
import tilelang.language as T
import torch
from tilelang.tools.cuda import iket

N = 96


@tilelang.jit(out_idx=[-1])
def add_one(threads=32):

    @T.prim_func
    def main(A: T.Tensor((N,), T.float32), B: T.Tensor((N,), T.float32)):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx, iket.range("kernel"):
            iket.mark("enter", payload=iket.payload(bx, dtype="int32"))
            for i in T.Parallel(threads):
                index = bx * threads + i
                B[index] = A[index] + 1
                iket.mark("stored", payload=iket.payload(index, dtype="int32"))

    return main


with iket.session(output_dir="anywhere", runtime_payloads=True):
    kernel = add_one()
    x = torch.randn(N)
    torch.testing.assert_close(kernel(x), x + 1)
print(iket.event_table(), iket.output_dir(), iket.runtime_payloads_enabled(), iket.trace_files(directory="anywhere"))
print(torch.cuda.current_stream().cuda_stream)
