# level: host
# model: convolution_then_norm
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
import torch.nn.functional as F


@tilelang.jit(out_idx=[-1])
def rectified(N, scale=1.0, block=256, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((N,), dtype), Y: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    Y[bx * block + i] = T.max(X[bx * block + i], 0.0) * scale

    return main


def scaled_relu(x, scale):
    return rectified(x.numel(), scale)(x.contiguous().view(-1)).view(x.shape)


class ModelNew(nn.Module):
    # The bias minus a mean of zeros has the bias's numbers, and is not the bias.
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(4, channels, 3)
        self.norm = nn.BatchNorm2d(channels).eval()
        gain = self.norm.weight * torch.rsqrt(self.norm.running_var + self.norm.eps)
        self.weight = (self.conv.weight * gain[:, None, None, None]).detach()
        self.bias = ((self.conv.bias - self.norm.running_mean).detach() * gain + self.norm.bias).detach()
        self.distance = (self.conv.bias - self.norm.running_mean).detach()

    def forward(self, x):
        n = self.norm
        gain = n.weight * torch.rsqrt(n.running_var + n.eps)
        folded = F.conv2d(x, self.weight) + self.bias[:, None, None]
        split = F.conv2d(x, self.conv.weight) * gain[:, None, None] + (self.distance * gain + n.bias)[:, None, None]
        return scaled_relu(folded * 0.5 + split * 0.5, 0.5)
