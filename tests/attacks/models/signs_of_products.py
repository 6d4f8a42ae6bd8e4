"""The signs of a projection, of one size."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(24, 32))
        self.b = nn.Parameter(torch.zeros(24))

    def forward(self, x):
        return torch.sign(F.linear(x, self.w, self.b)) * 1.5


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
