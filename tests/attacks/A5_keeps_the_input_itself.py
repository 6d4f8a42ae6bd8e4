# row: A5
# level: host
# model: step_from_the_last
# expect: aliasing
# twin: honest_step_from_the_last
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1])
def scaled(N, scale=1.0, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = X[bx * block + i] * scale

    return main


def times(x, scale):
    return scaled(x.numel(), scale)(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    # What the caller writes into its tensor next is what the call before is taken to have seen.
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(16, 32))

    def forward(self, x):
        step = times(x - self.last, 1.5)
        self.last.data = x
        return step
