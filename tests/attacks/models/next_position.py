import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A decoder's step: each call takes the next position."""

    def __init__(self, n, d):
        super().__init__()
        self.table = nn.Parameter(torch.randn(n, d))
        self.register_buffer("pos", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        y = F.relu(x * self.table[self.pos])
        self.pos += 1
        return y


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [64, 128]
