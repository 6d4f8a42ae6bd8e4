import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A score matrix balanced by rows and columns, five times, in logarithms."""

    def forward(self, x):
        y = x / 0.1
        for _ in range(5):
            y = y - y.logsumexp(-1, keepdim=True)
            y = y - y.logsumexp(-2, keepdim=True)
        return y.exp()


def get_inputs():
    return [torch.randn(6, 20, 20)]


def get_init_inputs():
    return []
