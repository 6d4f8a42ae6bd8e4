import torch
import torch.nn as nn


class Model(nn.Module):
    """Two inputs' product over the sum of what is largest in either's row."""

    def forward(self, x, z):
        largest = x.abs().amax(-1, keepdim=True) + z.abs().amax(-1, keepdim=True)
        return x * z / largest.clamp_min(1e-20)


def get_inputs():
    return [torch.randn(64, 128), torch.randn(64, 128)]


def get_init_inputs():
    return []
