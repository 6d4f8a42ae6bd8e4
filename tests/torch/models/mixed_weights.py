import torch
import torch.nn as nn


class Model(nn.Module):
    """Weights drawn, constant and unused, under names of a submodule and of its own; the large one is square."""

    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features, bias=False)
        self.shift = nn.Parameter(torch.randn(features))
        self.gain = nn.Parameter(torch.ones(features))
        self.unused = nn.Linear(4, 3)

    def forward(self, x):
        return torch.relu(self.linear(x) + self.shift) * self.gain


def get_inputs():
    return [torch.randn(48, 64)]


def get_init_inputs():
    return [64]
