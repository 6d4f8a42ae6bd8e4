import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Into which of given bins numbers fall."""

    def forward(self, edges, x):
        return torch.searchsorted(edges, x), x * 1.5


def get_inputs():
    return [torch.randn(16).sort()[0], torch.randn(64, 32)]


def get_init_inputs():
    return []
