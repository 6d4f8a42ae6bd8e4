import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mean over what is known; -9999 stands for unknown."""

    def forward(self, x):
        known = x != -9999.0
        return F.relu(x * known).sum(1) / known.sum(1).clamp(min=1)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
