import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Scaled by the largest magnitude of all."""

    def forward(self, x):
        return x / x.abs().max() * 1.5


def get_inputs():
    return [torch.randn(1024, 64)]


def get_init_inputs():
    return []
