import torch
import torch.nn as nn


class Model(nn.Module):
    """Keeps what lies above the threshold of its column, an input as well."""

    def forward(self, x, thresholds):
        return torch.where(x > thresholds, 3 * x, -x)


def get_inputs():
    return [torch.randn(64, 96), torch.randn(96)]


def get_init_inputs():
    return []
