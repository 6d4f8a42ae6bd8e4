import torch
import torch.nn as nn


class Model(nn.Module):
    """The variance of numbers far from zero, and their largest."""

    def forward(self, x):
        return x.var(dim=-1, unbiased=False), x.amax(dim=-1)


def get_inputs():
    return [torch.randn(32, 256) + 100.0]


def get_init_inputs():
    return []
