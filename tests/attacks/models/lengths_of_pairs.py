import torch
import torch.nn as nn


class Model(nn.Module):
    """Distances that `hypot` computes without overflow."""

    def forward(self, x, y):
        return torch.hypot(x, y)


def get_inputs():
    return [torch.randn(64, 32), torch.randn(64, 32)]


def get_init_inputs():
    return []
