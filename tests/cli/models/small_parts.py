import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A few rows go through layers of which no kernel is worth a launch, and many rows through one that is."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)
        self.scores = nn.Linear(64, 64)

    def forward(self, x, y):
        x = x + F.gelu(self.linear(self.norm(x)))
        return x, torch.softmax(torch.tanh(self.scores(y)) * 2 + 1, -1)


def get_inputs():
    return [torch.randn(4, 16), torch.randn(4096, 64)]


def get_init_inputs():
    return [16]
