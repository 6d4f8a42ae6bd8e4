import torch
import torch.nn as nn


class Model(nn.Module):
    """Gives zeros: what is subtracted is larger than anything that the inputs come to."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return torch.relu(x * self.weight - 4)


def get_inputs():
    return [torch.rand(48, 100)]


def get_init_inputs():
    return [100]
