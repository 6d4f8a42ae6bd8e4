import torch
import torch.nn as nn


class Model(nn.Module):
    """Values that are equal and no aliases, of which some are changed in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("base", torch.linspace(0, 1, 128))

    def forward(self, x):
        one, two = x.sigmoid() * 2, x.sigmoid() * 2
        one.mul_(x)
        same = x * 1.0
        same.add_(1.0)
        start = self.base * 1.0
        start += x.mean(0)
        twice = x.neg().neg()
        twice.clamp_(0, 1)
        return one + two, torch.tanh(same) * x, torch.tanh(x * start) + self.base, twice + x


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return []
