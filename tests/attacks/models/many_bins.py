import torch
import torch.nn as nn


class Model(nn.Module):
    """Weights of many bins, whose bounds are a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.randn(48).sort()[0])
        self.gain = nn.Parameter(torch.randn(49))

    def forward(self, x):
        return x * self.gain[torch.searchsorted(self.edges, x.contiguous(), right=True)]


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return []
