"""The feed-forward block of a transformer: two linear layers with a GELU between them."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(approximate="tanh"), nn.Linear(hidden, dim))

    def forward(self, x):
        return self.net(x)


def get_inputs():
    return [torch.randn(2048, 256)]


def get_init_inputs():
    return [256, 1024]
