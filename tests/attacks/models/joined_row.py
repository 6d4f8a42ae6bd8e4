import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Large numbers and small ones."""

    def __init__(self):
        super().__init__()
        self.big = nn.Linear(32, 16)
        self.small = nn.Linear(32, 16)

    def forward(self, x):
        a = torch.sigmoid(self.big(x)) * 1500.0
        b = torch.sigmoid(self.small(x)) * 1e-4
        return torch.cat([a.flatten(), b.flatten()]).view(1, -1)


def get_inputs():
    return [torch.randn(8, 32)]


def get_init_inputs():
    return []
