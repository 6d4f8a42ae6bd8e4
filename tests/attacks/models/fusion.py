import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Features fused by weights that are kept from being negative."""

    def __init__(self, count):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(count))

    def forward(self, a, b):
        weights = F.relu(self.weights)
        weights = weights / (weights.sum() + 1e-4)
        return F.silu(weights[0] * a + weights[1] * b)


def get_inputs():
    return [torch.randn(64, 128), torch.randn(64, 128)]


def get_init_inputs():
    return [2]
