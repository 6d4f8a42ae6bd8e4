import torch
import torch.nn as nn


class Model(nn.Module):
    """A scale and a shift by row, and relu."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return torch.relu(x * self.weight + self.bias) + 0.5


def get_inputs():
    return [torch.randn(48, 100)]


def get_init_inputs():
    return [100]
