import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows that decay over thirty orders of magnitude."""

    def forward(self, x):
        steps = torch.arange(x.shape[0], dtype=x.dtype).reshape(-1, 1)
        return (x * x + 1.0) * torch.exp(-steps)


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return []
