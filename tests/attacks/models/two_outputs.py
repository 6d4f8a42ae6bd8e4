import torch
import torch.nn as nn


class Model(nn.Module):
    """Two outputs of the same numbers, and a copy of a weight."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        y = x * 2.0 + 1.0
        return y, y.clone(), self.weight.clone()


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return [64]
