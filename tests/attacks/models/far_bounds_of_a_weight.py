import torch
import torch.nn as nn


class Model(nn.Module):
    """Columns over a scale that is kept within bounds, which its first values are far from."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((128,), 0.1))

    def forward(self, x):
        return x / self.scale.clamp(0.001, 1000.0) * 2.0


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
