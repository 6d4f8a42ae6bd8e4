import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A loss of pairs that are alike, 1, or not, -1."""

    def forward(self, x, t):
        return torch.where(t == 1, 1.0 - x, F.relu(x - 0.25) * (t == -1)) * 1.5


def get_inputs():
    return [torch.randn(64, 128), torch.randint(0, 2, (64, 128)) * 2 - 1]


def get_init_inputs():
    return []
