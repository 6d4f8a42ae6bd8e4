import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Adds magnitudes to an input that it is given."""

    def forward(self, total, x):
        total.add_(x.abs())
        return x * 1.5


def get_inputs():
    return [torch.rand(64, 128), torch.rand(64, 128)]


def get_init_inputs():
    return []
