import torch
import torch.nn as nn


class Model(nn.Module):
    """What `relu` and `abs` do does not show on inputs that are never negative."""

    def forward(self, x):
        return torch.relu(x) + torch.abs(x) * 0.5


def get_inputs():
    return [torch.rand(48, 100)]


def get_init_inputs():
    return []
