import torch
import torch.nn as nn


class Model(nn.Module):
    """A branch whose gain starts so small that it does not show, and one whose gate starts closed."""

    def __init__(self, n):
        super().__init__()
        self.gain = nn.Parameter(torch.full((n,), 1e-9))
        self.gate = nn.Parameter(torch.full((1,), -30.0))

    def forward(self, x):
        return torch.relu(x) + self.gain * torch.sin(x) + torch.sigmoid(self.gate) * torch.cos(x)


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return [128]
