import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Directions of very different lengths."""

    def forward(self, x, depth):
        d = F.normalize(x, dim=-1)
        t = torch.exp(-torch.sigmoid(depth) * 30.0)
        return d * t[:, None] * 1.5


def get_inputs():
    return [torch.randn(512, 3), torch.randn(512) * 3]


def get_init_inputs():
    return []
