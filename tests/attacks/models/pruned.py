import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A linear layer whose weights are pruned by a mask later."""

    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.register_buffer("mask", torch.ones(d, d, dtype=torch.bool))

    def forward(self, x):
        return F.relu(F.linear(x, self.fc.weight * self.mask, self.fc.bias))


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128]
