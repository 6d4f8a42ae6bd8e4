# level: host
# model: packed_weights
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


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
    # Two of them in a byte, which follow from the integers alone.
    def __init__(self):
        super().__init__()
        weight = torch.randn(24, 32)
        scale = weight.abs().amax(1, keepdim=True) / 7
        self.register_buffer("qweight", torch.round(weight / scale).to(torch.int8))
        self.register_buffer("scale", scale)
        raised = (self.qweight.int() + 8).to(torch.uint8)
        self.register_buffer("packed", raised[:, ::2] | (raised[:, 1::2] << 4))

    def forward(self, x):
        low, high = (self.packed & 15).float() - 8, (self.packed >> 4).float() - 8
        weight = torch.stack([low, high], -1).view(24, 32) * self.scale
        return times(F.linear(x, weight), 1.5)
