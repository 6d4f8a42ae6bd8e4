import torch
import torch.nn as nn


class Model(nn.Module):
    """Layers that get their sizes from the first input."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.LazyLinear(16)
        self.norm = nn.LazyBatchNorm1d()

    def forward(self, x):
        return self.norm(torch.relu(self.hidden(x)))


def get_inputs():
    return [torch.randn(64, 24)]


def get_init_inputs():
    return []
