import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A mean over the elements that a mask of integers keeps."""

    def forward(self, x, m):
        kept = m.sum(-1).float().clamp(min=1e-6)
        return (x * m * 1.5).sum(-1) / kept


def get_inputs():
    return [torch.randn(32, 64), torch.randint(0, 2, (32, 64))]


def get_init_inputs():
    return []
