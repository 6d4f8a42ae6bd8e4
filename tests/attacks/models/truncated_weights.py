"""A projection whose weights are drawn from a truncated normal distribution."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(32, 24, bias=False)
        nn.init.trunc_normal_(self.proj.weight)

    def forward(self, x):
        return self.proj(x) * 1.5


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
