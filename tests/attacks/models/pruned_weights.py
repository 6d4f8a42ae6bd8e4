"""A layer without its small weights: a mask of its own tells which they are."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24, 32))
        self.register_buffer("mask", self.weight.detach().abs() > 0.5)

    def forward(self, x):
        return F.linear(x, self.weight * self.mask) * 1.5


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
