import torch
import torch.nn as nn


class Model(nn.Module):
    """Lists and tuples among the arguments of the constructor."""

    def __init__(self, shape, sizes, named):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(shape))
        self.bias = nn.Parameter(torch.zeros(shape[-1:]))

    def forward(self, x):
        return torch.relu(x * self.weight + self.bias) + 0.5


def get_inputs():
    return [torch.randn(48, 100)]


def get_init_inputs():
    return [(100,), [3, (5, 7)], {"stride": (1, 2)}]
