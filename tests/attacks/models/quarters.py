import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Quarters, rounded half to even."""

    def forward(self, x):
        return torch.round(x * 4.0)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
