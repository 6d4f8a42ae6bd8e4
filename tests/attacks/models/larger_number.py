import torch
import torch.nn as nn


class Model(nn.Module):
    """The larger of two, or the one that is a number."""

    def forward(self, x, y):
        return torch.fmax(x, y)


def get_inputs():
    return [torch.randn(64, 32), torch.randn(64, 32)]


def get_init_inputs():
    return []
