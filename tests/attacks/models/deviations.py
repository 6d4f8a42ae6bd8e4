import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Rows by their standard deviation."""

    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) * 1.5


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return []
