"""Softmax of a projection, of one size."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(64, 32))
        self.b = nn.Parameter(torch.zeros(64))

    def forward(self, x):
        return torch.softmax(F.linear(x, self.w, self.b), -1)


def get_inputs():
    return [torch.randn(128, 32)]


def get_init_inputs():
    return []
