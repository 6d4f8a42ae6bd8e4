import torch
import torch.nn as nn


class Model(nn.Module):
    """What each key gets of a query."""

    def forward(self, q, k):
        return torch.softmax(q @ k.transpose(-1, -2) * 0.125, dim=-1) * 2.0


def get_inputs():
    return [torch.randn(4, 32, 64), torch.randn(4, 48, 64)]


def get_init_inputs():
    return []
