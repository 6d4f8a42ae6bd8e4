import torch
import torch.nn as nn


class Model(nn.Module):
    """Its input within bounds, in place."""

    def forward(self, x):
        x.copy_(torch.clamp(x, -20, 20))
        return x * 1.5


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
