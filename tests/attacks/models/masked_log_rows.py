import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Scores that a mask hides are minus infinity."""

    def forward(self, x, mask):
        s = x.masked_fill(mask, float("-inf"))
        return torch.log_softmax(s, -1) * 1.5


def get_inputs():
    return [torch.randn(64, 64), torch.rand(64, 64) < 0.2]


def get_init_inputs():
    return []
