import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Rows longer than a bound are shortened to it, and rows that are next to nothing become ones."""

    def forward(self, x):
        n = x.norm(dim=-1, keepdim=True)
        y = torch.where(n > 40.0, x * (40.0 / n), x)
        return torch.where(n < 1e-3, torch.ones_like(x), y)


def get_inputs():
    return [torch.randn(128, 64) * torch.rand(128, 1) * 10]


def get_init_inputs():
    return []
