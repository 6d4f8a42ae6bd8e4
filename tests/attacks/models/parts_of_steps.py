import torch
import torch.nn as nn


class Model(nn.Module):
    """Numbers in steps of a quarter."""

    def forward(self, x):
        return torch.floor(x * 4.0) * 2.0


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
