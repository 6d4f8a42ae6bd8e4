import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A product of odd sizes with a bias and a square."""

    def __init__(self, n, m):
        super().__init__()
        self.linear = nn.Linear(n, m)

    def forward(self, x):
        return torch.square(F.relu(self.linear(x)))


def get_inputs():
    return [torch.randn(45, 150)]


def get_init_inputs():
    return [150, 70]
