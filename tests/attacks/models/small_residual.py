import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A residual whose branch is small."""

    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)
        self.fc = nn.Linear(n, n)
        self.scale = nn.Parameter(torch.full((n,), 1e-5))

    def forward(self, x):
        return x + self.scale * self.fc(self.norm(x))


def get_inputs():
    return [torch.randn(64, 48)]


def get_init_inputs():
    return [48]
