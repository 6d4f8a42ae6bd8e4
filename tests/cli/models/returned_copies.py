import torch
import torch.nn as nn


class Model(nn.Module):
    """Results that are equal to an input or a weight, of which some are their memory and some are not."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(64))

    def forward(self, x):
        return torch.tanh(x) * self.scale, x * 1, (x + 0).view(-1), self.scale * 1, x, x.t()


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return []
