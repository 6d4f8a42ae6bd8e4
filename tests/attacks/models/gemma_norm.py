import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Root mean square norm with a gain around one."""

    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)
        return y * (1.0 + self.weight)


def get_inputs():
    return [torch.randn(96, 192)]


def get_init_inputs():
    return [192]
