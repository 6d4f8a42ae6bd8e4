import torch
import torch.nn as nn


class Model(nn.Module):
    """Of two inputs, one may be no number."""

    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return torch.fmax(x, y) * 1.5


def get_inputs():
    return [torch.randn(64, 128), torch.randn(64, 128)]


def get_init_inputs():
    return []
