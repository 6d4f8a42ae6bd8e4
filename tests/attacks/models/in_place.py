import torch
import torch.nn as nn


class Model(nn.Module):
    """Doubles its input in place."""

    def forward(self, x):
        x.mul_(2.0)
        return x + 1.0


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
