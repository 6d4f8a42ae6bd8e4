import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A symmetric matrix."""

    def forward(self, a, x):
        return a @ x * 1.5


def get_inputs():
    return [(lambda r: r + r.t())(torch.randn(64, 64)), torch.randn(64, 32)]


def get_init_inputs():
    return []
