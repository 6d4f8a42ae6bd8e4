import torch
import torch.nn as nn


class Model(nn.Module):
    """Columns with a large element are scaled."""

    def forward(self, x, gain):
        loud = (x > 3.5).any(dim=0)
        return torch.where(loud, x * 0.5, x) * gain


def get_inputs():
    return [torch.randn(256, 64), torch.rand(256, 64) + 0.5]


def get_init_inputs():
    return []
