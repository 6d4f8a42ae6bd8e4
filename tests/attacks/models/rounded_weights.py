"""A layer that rounds its weights to 8 bits in each call."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24, 32))

    def forward(self, x):
        scale = self.weight.abs().amax(1, keepdim=True) / 127
        return F.linear(x, torch.round(self.weight / scale) * scale) * 1.5


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
