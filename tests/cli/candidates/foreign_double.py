import tilelang
import tilelang.language as T
import torch
import torch.nn as nn

SOURCE = """
template <class In, class Out>
__device__ void doubled(In x, Out y, int count) {
  for (int i = 0; i < count; ++i) y[i] = x[i] + x[i];
}
"""


@tilelang.jit(out_idx=[-1])
def double(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            T.import_source(SOURCE)
            T.call_extern("handle", "doubled", T.access_ptr(A, "r"), T.access_ptr(B, "w"), N)

    return main


class ModelNew(nn.Module):
    def forward(self, x):
        return double(x.shape[0])(x)
