import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows that are masked as a whole give zeros."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        m = x.amax(-1, keepdim=True)
        m = torch.where(m == float("-inf"), torch.zeros_like(m), m)
        e = torch.exp(x - m)
        return e / e.sum(-1, keepdim=True).clamp_min(1e-9) * 1.5


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return []
