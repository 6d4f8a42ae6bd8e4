import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Which elements agree, but for roundings."""

    def forward(self, a, b):
        return torch.isclose(a, b), a * 1.5


def get_inputs():
    return [torch.randn(64, 128), torch.randn(64, 128)]


def get_init_inputs():
    return []
