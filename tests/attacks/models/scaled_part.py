import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Scales the first columns of its input in place."""

    def forward(self, x, s):
        x[:, :16].mul_(s)
        return x.sum(-1)


def get_inputs():
    return [torch.randn(64, 48), torch.rand(16) + 0.5]


def get_init_inputs():
    return []
