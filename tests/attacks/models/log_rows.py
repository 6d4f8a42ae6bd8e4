import torch
import torch.nn as nn


class Model(nn.Module):
    """Minus infinity where relu gives zero."""

    def forward(self, x):
        return torch.log(torch.relu(x))


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
